/* Profile A. */
#include "stub_a.h"

#ifdef __AVR__
#include <avr/pgmspace.h>
#define FLASH_BYTE(address) pgm_read_byte(address)
#define FLASH_HANDLER(address) ((stub_handler_t)pgm_read_word(address))
#define COUNT pgm_read_byte(&stub_command_count)
#else
#define FLASH_BYTE(address) (*(address))
#define FLASH_HANDLER(address) (*(address))
#define COUNT stub_command_count
#endif

enum { CALL = 1, RESPONSE = 2, HEARTBEAT = 4 };
enum { START = 0xa5, NO_SUCH_COMMAND = 1, BAD_LENGTH = 3 };

uint8_t stub_frame[4 + STUB_PAYLOAD];
/* Place in the frame; 0: none began. */
static uint8_t place;
static uint16_t sum;
/* Number of the last call or heartbeat; 0 before. */
static uint8_t last;

static void add(uint8_t byte)
{
    uint8_t x = (uint8_t)(sum >> 8) ^ byte;
    x ^= x >> 4;
    sum = (uint16_t)(sum << 8) ^ ((uint16_t)x << 12) ^ ((uint16_t)x << 5) ^ x;
}

/* Sends the first `length` bytes of the frame with its checksum. */
static void reply(uint8_t length)
{
    uint8_t i;
    stub_port_send(START);
    sum = 0xffff;
    for (i = 0; i < length; i++) {
        add(stub_frame[i]);
        stub_port_send(stub_frame[i]);
    }
    i = (uint8_t)sum;
    stub_port_send((uint8_t)(sum >> 8));
    stub_port_send(i);
}

static void call(void)
{
    uint8_t i, status = NO_SUCH_COMMAND, length = 0;
    /* What comes late or twice was run already, or was given up by the gate. */
    if (last && (int8_t)(stub_frame[3] - last) <= 0)
        return;
    last = stub_frame[3];
    for (i = 0; i < COUNT; i++) {
        if (FLASH_BYTE(&stub_commands[i].cmd_id) != stub_frame[2])
            continue;
        status = BAD_LENGTH;
        if (FLASH_BYTE(&stub_commands[i].req_len) == stub_frame[0]) {
            status = FLASH_HANDLER(&stub_commands[i].handler)();
            if (!status)
                length = FLASH_BYTE(&stub_commands[i].resp_len);
        }
        break;
    }
    stub_payload[length++] = status;
    stub_frame[0] = length;
    stub_frame[1] = RESPONSE;
    reply(4 + length);
}

void stub_silence(void)
{
    place = 0;
}

void stub_byte(uint8_t byte)
{
    if (!place) {
        place = byte == START;
        sum = 0xffff;
        return;
    }
    add(byte);
    if (place <= 4 + STUB_PAYLOAD)
        stub_frame[place - 1] = byte;
    /* A length beyond every layout is none: else it would swallow the frames behind it. */
    if (stub_frame[0] > STUB_PAYLOAD || (place == 2 && byte > HEARTBEAT)) {
        place = 0;
        return;
    }
    /* Start, four bytes, payload and two of the checksum, which make the sum 0. */
    if (place++ < 6 + stub_frame[0])
        return;
    place = 0;
    if (sum || !stub_frame[3])
        return;
    if (stub_frame[1] == CALL)
        call();
    else if (stub_frame[1] == HEARTBEAT && !stub_frame[0]) {
        last = stub_frame[3];
        reply(4);
    }
}

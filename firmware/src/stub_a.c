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

uint8_t stub_payload[STUB_PAYLOAD];
/* Length, type, command and number of the frame that comes in. */
static uint8_t head[4];
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

static void put(uint8_t byte)
{
    add(byte);
    stub_port_send(byte);
}

/* Sends a frame with `length` bytes of the buffer, and the status behind them in an answer. */
static void reply(uint8_t type, uint8_t length, uint8_t status)
{
    uint8_t i;
    stub_port_send(START);
    sum = 0xffff;
    put(type == RESPONSE ? length + 1 : length);
    put(type);
    put(head[2]);
    put(head[3]);
    for (i = 0; i < length; i++)
        put(stub_payload[i]);
    if (type == RESPONSE)
        put(status);
    i = (uint8_t)sum;
    stub_port_send((uint8_t)(sum >> 8));
    stub_port_send(i);
}

static void call(void)
{
    uint8_t i, status = NO_SUCH_COMMAND, length = 0;
    /* What comes late or twice was run already, or was given up by the gate. */
    if (last && (int8_t)(head[3] - last) <= 0)
        return;
    last = head[3];
    for (i = 0; i < COUNT; i++) {
        if (FLASH_BYTE(&stub_commands[i].cmd_id) != head[2])
            continue;
        status = BAD_LENGTH;
        if (FLASH_BYTE(&stub_commands[i].req_len) == head[0]) {
            status = FLASH_HANDLER(&stub_commands[i].handler)();
            if (!status)
                length = FLASH_BYTE(&stub_commands[i].resp_len);
        }
        break;
    }
    reply(RESPONSE, length, status);
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
    if (place < 5)
        head[place - 1] = byte;
    else if (place - 5 < head[0])
        stub_payload[place - 5] = byte;
    /* A length beyond every layout is none: else it would swallow the frames behind it. */
    if (head[0] > STUB_PAYLOAD || (place == 2 && byte > HEARTBEAT)) {
        place = 0;
        return;
    }
    /* Start, four bytes, payload and two of the checksum, which make the sum 0. */
    if (place++ < 6 + head[0])
        return;
    place = 0;
    if (sum || !head[3])
        return;
    if (head[1] == CALL)
        call();
    else if (head[1] == HEARTBEAT && !head[0]) {
        last = head[3];
        reply(HEARTBEAT, 0, 0);
    }
}

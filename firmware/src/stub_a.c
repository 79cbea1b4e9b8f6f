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
/* Both halves of the sum. */
static uint8_t high, low;
/* Number of the last call or heartbeat; 0 before. */
static uint8_t last;

static void add(uint8_t byte)
{
    byte ^= high;
    byte ^= byte >> 4;
    high = low ^ (uint8_t)(byte << 4) ^ byte >> 3;
    low = (uint8_t)(byte << 5) ^ byte;
}

/* Sends the frame with its checksum. */
static void reply(void)
{
    uint8_t i, length = 4 + stub_frame[0];
    stub_port_send(START);
    high = low = 0xff;
    for (i = 0; i < length; i++) {
        add(stub_frame[i]);
        stub_port_send(stub_frame[i]);
    }
    stub_port_send(high);
    stub_port_send(low);
}

/* Runs a call, and makes the frame its answer. */
static void call(void)
{
    uint8_t i, status = NO_SUCH_COMMAND, length = 0;
    for (i = 0; i < COUNT; i++) {
        if (FLASH_BYTE(&stub_commands[i].cmd_id) != stub_frame[2])
            continue;
        status = BAD_LENGTH;
        if (FLASH_BYTE(&stub_commands[i].req_len) != stub_frame[0])
            break;
        length = FLASH_BYTE(&stub_commands[i].resp_len);
        /* The status follows. */
        status = length < STUB_PAYLOAD ? FLASH_HANDLER(&stub_commands[i].handler)() : STUB_FAILED;
        if (status)
            length = 0;
        break;
    }
    stub_payload[length++] = status;
    stub_frame[0] = length;
    stub_frame[1] = RESPONSE;
}

void stub_table_silence(void)
{
    place = 0;
}

void stub_table_byte(uint8_t byte)
{
    uint8_t is_call;
    if (!place) {
        place = byte == START;
        high = low = 0xff;
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
    if (high | low)
        return;
    /* All else is the word of a part: its own, where the line brings it back. */
    is_call = stub_frame[1] == CALL;
    if (!is_call && (stub_frame[1] != HEARTBEAT || stub_frame[2]))
        return;
    if (!stub_frame[3]) {
        /* Asks for the number, and does not count. */
        if (is_call)
            return;
        stub_frame[1] = RESPONSE;
    } else if (!last || (int8_t)(stub_frame[3] - last) > 0)
        last = stub_frame[3];
    else if (is_call)
        /* What comes late or twice was run already, or was given up by the gate. */
        return;
    if (is_call)
        call();
    else
        /* Tells the number, and by it the part from an echo. */
        stub_frame[2] = last;
    reply();
}

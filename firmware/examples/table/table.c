/* A table part: a sensor with four bytes, and a lamp. For an ATmega328P and for an 8051.
 *
 *   1  sensor     ()              -> 4 bytes
 *   2  lamp       (on: 1 byte)    -> nothing
 */
#ifdef __AVR__
#include <avr/io.h>
#include <avr/pgmspace.h>
#define LAMP(on) (PORTB = (on) ? _BV(5) : 0)
#else
#include <8052.h>
#define PROGMEM
#define LAMP(on) (P1 = (on))
#endif

#include "stub_a.h"
#include "stub_port.h"

static uint8_t sensor(void)
{
    stub_payload[0] = 1;
    stub_payload[1] = 2;
    stub_payload[2] = 3;
    stub_payload[3] = 4;
    return STUB_OK;
}

static uint8_t lamp(void)
{
    if (stub_payload[0] > 1)
        return STUB_BAD_ARGUMENT;
    LAMP(stub_payload[0]);
    return STUB_OK;
}

const STUB_ROM stub_cmd_t stub_commands[] PROGMEM = {
    { 1, 0, 4, sensor },
    { 2, 1, 0, lamp },
};
const STUB_ROM uint8_t stub_command_count PROGMEM = sizeof stub_commands / sizeof stub_commands[0];

void main(void)
{
    stub_port_open();
    for (;;)
        stub_table_byte(stub_port_receive());
}

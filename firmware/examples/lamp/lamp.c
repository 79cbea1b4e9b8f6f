/* A lamp with a sensor and a motor, for an ATmega328P and an nRF51: four tools.
 *
 *   1  light of the room, no argument       -> {0: light, 1: degrees}
 *   2  lamp, bool                           -> bool
 *   3  motor, steps with a sign             -> int, the position
 *   4  calls so far, no argument            -> {0: lamp calls, 1: motor calls}
 */
#ifdef __AVR__
#include <avr/io.h>
#include <avr/pgmspace.h>
#define LAMP(on) (DDRB |= _BV(5), (on) ? (PORTB |= _BV(5)) : (PORTB &= (uint8_t)~_BV(5)))
#else
#include "nrf51.h"
#define PROGMEM
/* An LED of a micro:bit: row 1, with column 1 low. */
#define LAMP(on) (GPIO_DIR = 1 << 13 | 1 << 4, GPIO_OUT = (uint32_t)(on) << 13)
#endif

#include "stub_b.h"
#include "stub_port.h"

static stub_int_t position, lamp_calls, motor_calls;

static int16_t sensor(const stub_int_t *args)
{
    (void)args;
    stub_put_map(2);
    stub_put_int(0);
    stub_put_int(300 + (position & 15));
    stub_put_int(1);
    stub_put_int(-4);
    return STUB_OK;
}

static int16_t lamp(const stub_int_t *args)
{
    LAMP(args[0]);
    lamp_calls++;
    stub_put_bool(args[0] != 0);
    return STUB_OK;
}

static int16_t motor(const stub_int_t *args)
{
    if (args[0] > 100 || args[0] < -100)
        return STUB_BAD_ARGUMENT;
    position += args[0];
    motor_calls++;
    stub_put_int(position);
    return STUB_OK;
}

static int16_t calls(const stub_int_t *args)
{
    (void)args;
    stub_put_map(2);
    stub_put_int(0);
    stub_put_int(lamp_calls);
    stub_put_int(1);
    stub_put_int(motor_calls);
    return STUB_OK;
}

const stub_tool_t stub_tools[] PROGMEM = {
    { 1, 0, { 0 }, STUB_MAP, sensor },
    { 2, 1, { STUB_BOOL }, STUB_BOOL, lamp },
    { 3, 1, { STUB_INT }, STUB_INT, motor },
    { 4, 0, { 0 }, STUB_MAP, calls },
};
const uint8_t stub_tool_count = sizeof stub_tools / sizeof stub_tools[0];

int main(void)
{
    stub_port_open();
    stub_begin();
    for (;;)
        stub_byte(stub_port_receive());
}

/* The smallest part, for an ATmega328P: a sensor without arguments and an LED.
 *
 *   1  ticks of a timer, no argument   -> {0: ticks, 1: LED}
 *   2  LED, bool                       -> bool
 */
#include <avr/io.h>
#include <avr/pgmspace.h>

#include "stub_b.h"
#include "stub_port.h"

static int16_t state(const stub_int_t *args)
{
    (void)args;
    stub_put_map(2);
    stub_put_int(0);
    stub_put_int(TCNT0);
    stub_put_int(1);
    stub_put_bool(PORTB & _BV(5));
    return STUB_OK;
}

static int16_t led(const stub_int_t *args)
{
    if (args[0])
        PORTB |= _BV(5);
    else
        PORTB &= ~_BV(5);
    stub_put_bool(args[0] != 0);
    return STUB_OK;
}

const stub_tool_t stub_tools[] PROGMEM = {
    { 1, 0, { 0 }, STUB_MAP, state },
    { 2, 1, { STUB_BOOL }, STUB_BOOL, led },
};
const uint8_t stub_tool_count = sizeof stub_tools / sizeof stub_tools[0];

int main(void)
{
    DDRB = _BV(5);
    TCCR0B = _BV(CS02) | _BV(CS00);
    stub_port_open();
    stub_begin();
    for (;;)
        stub_byte(stub_port_receive());
}

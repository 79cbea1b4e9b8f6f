/* Starts of an ATmega328P, counted in the last byte of its EEPROM, which outlasts a loss of power. One within the 3.4 ms of the writing may
 * leave any value there. */
#include <avr/io.h>

#include "stub_b.h"

uint8_t stub_port_start(void)
{
    uint8_t mark;
    EEAR = E2END;
    EECR |= _BV(EERE);
    mark = EEDR + 1;
    if (!mark)
        mark = 1;
    EEDR = mark;
    EECR |= _BV(EEMPE);
    EECR |= _BV(EEPE);
    while (EECR & _BV(EEPE))
        ;
    return mark;
}

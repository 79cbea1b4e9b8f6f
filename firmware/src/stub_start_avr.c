/* Starts of an ATmega328P, counted in three bytes of its EEPROM, which outlasts a loss of power. One while a byte is written may leave any
 * value there: then the two behind are as before, or the first is as meant, and no mark that was given is given again. Two starts in a row
 * that are cut off so may lose the count. */
#ifdef __AVR__
#include <avr/interrupt.h>
#include <avr/io.h>

#include "stub_b.h"

/* Places of the copies, in the order of their writing. The first byte of an EEPROM is the one that a sinking supply spoils. */
enum { THIRD = 1, SECOND, FIRST };

static uint8_t kept(uint8_t at)
{
    EEARL = at;
    EECR |= _BV(EERE);
    return EEDR;
}

uint8_t stub_port_start(void)
{
    uint8_t mark, at, state;
    EEARH = 0;
    mark = kept(THIRD);
    if (mark != kept(SECOND))
        mark = kept(FIRST);
    if (!++mark)
        mark = 1;
    for (at = FIRST; at; at--) {
        EEARL = at;
        EEDR = mark;
        /* The second within four cycles of the first, which an interrupt of a sketch would take. */
        state = SREG;
        cli();
        EECR |= _BV(EEMPE);
        EECR |= _BV(EEPE);
        SREG = state;
        while (EECR & _BV(EEPE))
            ;
    }
    return mark;
}
#endif

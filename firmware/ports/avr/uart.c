/* The first UART of an ATmega328P, polled. */
#include <avr/io.h>

#include "stub_port.h"

#ifndef STUB_BAUD
#define STUB_BAUD 115200UL
#endif

void stub_port_send(uint8_t byte)
{
    while (!(UCSR0A & _BV(UDRE0)))
        ;
    UDR0 = byte;
}

void stub_port_open(void)
{
    UCSR0A = _BV(U2X0);
    UBRR0 = (F_CPU / 4 / STUB_BAUD - 1) / 2;
    UCSR0B = _BV(RXEN0) | _BV(TXEN0);
}

uint8_t stub_port_receive(void)
{
    while (!(UCSR0A & _BV(RXC0)))
        ;
    return UDR0;
}

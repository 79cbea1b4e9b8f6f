/* The UART of an 8052, polled: 9600 baud at 11.0592 MHz. */
#include <8052.h>

#include "stub_port.h"

void stub_port_send(uint8_t byte)
{
    SBUF = byte;
    while (!TI)
        ;
    TI = 0;
}

void stub_port_open(void)
{
    SCON = 0x50;
    TMOD = 0x20;
    TH1 = 0xfd;
    TR1 = 1;
}

uint8_t stub_port_receive(void)
{
    while (!RI)
        ;
    RI = 0;
    return SBUF;
}

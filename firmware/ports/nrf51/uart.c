/* The UART of an nRF51 (Cortex-M0), asleep between bytes: 115,200 baud on the pins of a BBC micro:bit. */
#include "nrf51.h"
#include "stub_port.h"

enum { TX_PIN = 24, RX_PIN = 25, ENABLED = 4, RXDRDY = 1 << 2, UART_IRQ = 1 << 2 };

void stub_port_send(uint8_t byte)
{
    UART_TXDRDY = 0;
    UART_TXD = byte;
    while (!UART_TXDRDY)
        ;
}

void stub_port_open(void)
{
    UART_PSELTXD = TX_PIN;
    UART_PSELRXD = RX_PIN;
    UART_BAUDRATE = 0x01d7e000;
    UART_ENABLE = ENABLED;
    UART_INTENSET = RXDRDY;
    /* Interrupts wake the processor, and are not taken. */
    __asm__ volatile("cpsid i");
    NVIC_ISER = UART_IRQ;
    UART_STARTTX = 1;
    UART_STARTRX = 1;
}

uint8_t stub_port_receive(void)
{
    while (!UART_RXDRDY)
        __asm__ volatile("wfi");
    UART_RXDRDY = 0;
    NVIC_ICPR = UART_IRQ;
    return (uint8_t)UART_RXD;
}

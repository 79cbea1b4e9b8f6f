;--------------------------------------------------------
; File Created by SDCC : free open source ANSI-C Compiler
; Version 4.2.0 #13081 (Linux)
;--------------------------------------------------------
	.module stub_a
	.optsdcc -mmcs51 --model-small
	
;--------------------------------------------------------
; Public variables in this module
;--------------------------------------------------------
	.globl _stub_port_send
	.globl _stub_frame
	.globl _stub_silence
	.globl _stub_byte
;--------------------------------------------------------
; special function registers
;--------------------------------------------------------
	.area RSEG    (ABS,DATA)
	.org 0x0000
;--------------------------------------------------------
; special function bits
;--------------------------------------------------------
	.area RSEG    (ABS,DATA)
	.org 0x0000
;--------------------------------------------------------
; overlayable register banks
;--------------------------------------------------------
	.area REG_BANK_0	(REL,OVR,DATA)
	.ds 8
;--------------------------------------------------------
; internal ram data
;--------------------------------------------------------
	.area DSEG    (DATA)
_stub_frame::
	.ds 12
_place:
	.ds 1
_sum:
	.ds 2
_last:
	.ds 1
_call_i_65536_12:
	.ds 1
;--------------------------------------------------------
; overlayable items in internal ram
;--------------------------------------------------------
	.area	OSEG    (OVR,DATA)
;--------------------------------------------------------
; indirectly addressable internal ram data
;--------------------------------------------------------
	.area ISEG    (DATA)
;--------------------------------------------------------
; absolute internal ram data
;--------------------------------------------------------
	.area IABS    (ABS,DATA)
	.area IABS    (ABS,DATA)
;--------------------------------------------------------
; bit data
;--------------------------------------------------------
	.area BSEG    (BIT)
;--------------------------------------------------------
; paged external ram data
;--------------------------------------------------------
	.area PSEG    (PAG,XDATA)
;--------------------------------------------------------
; external ram data
;--------------------------------------------------------
	.area XSEG    (XDATA)
;--------------------------------------------------------
; absolute external ram data
;--------------------------------------------------------
	.area XABS    (ABS,XDATA)
;--------------------------------------------------------
; external initialized ram data
;--------------------------------------------------------
	.area XISEG   (XDATA)
	.area HOME    (CODE)
	.area GSINIT0 (CODE)
	.area GSINIT1 (CODE)
	.area GSINIT2 (CODE)
	.area GSINIT3 (CODE)
	.area GSINIT4 (CODE)
	.area GSINIT5 (CODE)
	.area GSINIT  (CODE)
	.area GSFINAL (CODE)
	.area CSEG    (CODE)
;--------------------------------------------------------
; global & static initialisations
;--------------------------------------------------------
	.area HOME    (CODE)
	.area GSINIT  (CODE)
	.area GSFINAL (CODE)
	.area GSINIT  (CODE)
;--------------------------------------------------------
; Home
;--------------------------------------------------------
	.area HOME    (CODE)
	.area HOME    (CODE)
;--------------------------------------------------------
; code
;--------------------------------------------------------
	.area CSEG    (CODE)
;------------------------------------------------------------
;Allocation info for local variables in function 'add'
;------------------------------------------------------------
;byte                      Allocated to registers r7 
;x                         Allocated to registers r6 
;------------------------------------------------------------
;	src/stub_a.c:25: static void add(uint8_t byte)
;	-----------------------------------------
;	 function add
;	-----------------------------------------
_add:
	ar7 = 0x07
	ar6 = 0x06
	ar5 = 0x05
	ar4 = 0x04
	ar3 = 0x03
	ar2 = 0x02
	ar1 = 0x01
	ar0 = 0x00
	mov	r7,dpl
;	src/stub_a.c:27: uint8_t x = (uint8_t)(sum >> 8) ^ byte;
	mov	a,(_sum + 1)
	xrl	ar7,a
;	src/stub_a.c:28: x ^= x >> 4;
	mov	a,r7
	swap	a
	anl	a,#0x0f
	mov	r6,a
	mov	a,r7
	xrl	ar6,a
;	src/stub_a.c:29: sum = (uint16_t)(sum << 8) ^ ((uint16_t)x << 12) ^ ((uint16_t)x << 5) ^ x;
	mov	r7,_sum
	clr	a
	mov	r5,a
	mov	r4,a
	mov	a,r6
	swap	a
	anl	a,#0xf0
	mov	r3,a
	clr	a
	xrl	ar5,a
	mov	a,r3
	xrl	ar7,a
	mov	ar2,r6
	mov	a,r4
	swap	a
	rl	a
	anl	a,#0xe0
	xch	a,r2
	swap	a
	rl	a
	xch	a,r2
	xrl	a,r2
	xch	a,r2
	anl	a,#0xe0
	xch	a,r2
	xrl	a,r2
	mov	r3,a
	mov	a,r2
	xrl	ar5,a
	mov	a,r3
	xrl	ar7,a
	mov	a,r6
	xrl	a,r5
	mov	_sum,a
	mov	a,r4
	xrl	a,r7
	mov	(_sum + 1),a
;	src/stub_a.c:30: }
	ret
;------------------------------------------------------------
;Allocation info for local variables in function 'reply'
;------------------------------------------------------------
;length                    Allocated to registers r7 
;i                         Allocated to registers r7 
;------------------------------------------------------------
;	src/stub_a.c:33: static void reply(uint8_t length)
;	-----------------------------------------
;	 function reply
;	-----------------------------------------
_reply:
	mov	r7,dpl
;	src/stub_a.c:36: stub_port_send(START);
	mov	dpl,#0xa5
	push	ar7
	lcall	_stub_port_send
	pop	ar7
;	src/stub_a.c:37: sum = 0xffff;
	mov	_sum,#0xff
	mov	(_sum + 1),#0xff
;	src/stub_a.c:38: for (i = 0; i < length; i++) {
	mov	r6,#0x00
00103$:
	clr	c
	mov	a,r6
	subb	a,r7
	jnc	00101$
;	src/stub_a.c:39: add(stub_frame[i]);
	mov	a,r6
	add	a,#_stub_frame
	mov	r1,a
	mov	dpl,@r1
	push	ar7
	push	ar6
	push	ar1
	lcall	_add
	pop	ar1
;	src/stub_a.c:40: stub_port_send(stub_frame[i]);
	mov	dpl,@r1
	lcall	_stub_port_send
	pop	ar6
	pop	ar7
;	src/stub_a.c:38: for (i = 0; i < length; i++) {
	inc	r6
	sjmp	00103$
00101$:
;	src/stub_a.c:42: i = (uint8_t)sum;
	mov	r7,_sum
;	src/stub_a.c:43: stub_port_send((uint8_t)(sum >> 8));
	mov	dpl,(_sum + 1)
	push	ar7
	lcall	_stub_port_send
	pop	ar7
;	src/stub_a.c:44: stub_port_send(i);
	mov	dpl,r7
;	src/stub_a.c:45: }
	ljmp	_stub_port_send
;------------------------------------------------------------
;Allocation info for local variables in function 'call'
;------------------------------------------------------------
;i                         Allocated with name '_call_i_65536_12'
;status                    Allocated to registers r7 
;length                    Allocated to registers r5 
;------------------------------------------------------------
;	src/stub_a.c:47: static void call(void)
;	-----------------------------------------
;	 function call
;	-----------------------------------------
_call:
;	src/stub_a.c:49: uint8_t i, status = NO_SUCH_COMMAND, length = 0;
	mov	r7,#0x01
	mov	r6,#0x00
;	src/stub_a.c:51: if (last && (int8_t)(stub_frame[3] - last) <= 0)
	mov	a,_last
	jz	00102$
	mov	a,(_stub_frame + 0x0003)
	clr	c
	subb	a,_last
	mov	r5,a
	clr	c
	mov	a,#(0x00 ^ 0x80)
	mov	b,r5
	xrl	b,#0x80
	subb	a,b
	jc	00102$
;	src/stub_a.c:52: return;
	ret
00102$:
;	src/stub_a.c:53: last = stub_frame[3];
	mov	_last,(_stub_frame + 0x0003)
;	src/stub_a.c:54: for (i = 0; i < COUNT; i++) {
	mov	r5,(_stub_frame + 0x0002)
	mov	_call_i_65536_12,#0x00
00113$:
	mov	dptr,#_stub_command_count
	clr	a
	movc	a,@a+dptr
	mov	r3,a
	clr	c
	mov	a,_call_i_65536_12
	subb	a,r3
	jnc	00111$
;	src/stub_a.c:55: if (FLASH_BYTE(&stub_commands[i].cmd_id) != stub_frame[2])
	mov	a,_call_i_65536_12
	mov	b,#0x05
	mul	ab
	mov	r2,a
	mov	r3,b
	add	a,#_stub_commands
	mov	dpl,a
	mov	a,r3
	addc	a,#(_stub_commands >> 8)
	mov	dph,a
	clr	a
	movc	a,@a+dptr
	mov	r4,a
	cjne	a,ar5,00110$
;	src/stub_a.c:57: status = BAD_LENGTH;
	mov	r7,#0x03
;	src/stub_a.c:58: if (FLASH_BYTE(&stub_commands[i].req_len) == stub_frame[0]) {
	mov	a,r2
	add	a,#_stub_commands
	mov	r4,a
	mov	a,r3
	addc	a,#(_stub_commands >> 8)
	mov	r3,a
	mov	dpl,r4
	mov	dph,r3
	inc	dptr
	clr	a
	movc	a,@a+dptr
	mov	r2,a
	cjne	a,_stub_frame,00111$
;	src/stub_a.c:59: status = FLASH_HANDLER(&stub_commands[i].handler)();
	push	ar6
	mov	dpl,r4
	mov	dph,r3
	inc	dptr
	inc	dptr
	inc	dptr
	clr	a
	movc	a,@a+dptr
	mov	r2,a
	inc	dptr
	clr	a
	movc	a,@a+dptr
	mov	r6,a
	push	ar6
	push	ar4
	push	ar3
	mov	dpl,r2
	mov	dph,r6
	lcall	__sdcc_call_dptr
	mov	r2,dpl
	pop	ar3
	pop	ar4
	pop	ar6
	mov	ar7,r2
;	src/stub_a.c:60: if (!status)
	pop	ar6
	mov	a,r2
	jnz	00111$
;	src/stub_a.c:61: length = FLASH_BYTE(&stub_commands[i].resp_len);
	mov	dpl,r4
	mov	dph,r3
	inc	dptr
	inc	dptr
	clr	a
	movc	a,@a+dptr
	mov	r6,a
;	src/stub_a.c:63: break;
	sjmp	00111$
00110$:
;	src/stub_a.c:54: for (i = 0; i < COUNT; i++) {
	inc	_call_i_65536_12
	sjmp	00113$
00111$:
;	src/stub_a.c:65: stub_payload[length++] = status;
	mov	a,r6
	inc	a
	mov	r5,a
	mov	a,r6
	add	a,#(_stub_frame + 0x0004)
	mov	r0,a
	mov	@r0,ar7
;	src/stub_a.c:66: stub_frame[0] = length;
	mov	_stub_frame,r5
;	src/stub_a.c:67: stub_frame[1] = RESPONSE;
	mov	(_stub_frame + 0x0001),#0x02
;	src/stub_a.c:68: reply(4 + length);
	mov	a,#0x04
	add	a,r5
	mov	dpl,a
;	src/stub_a.c:69: }
	ljmp	_reply
;------------------------------------------------------------
;Allocation info for local variables in function 'stub_silence'
;------------------------------------------------------------
;	src/stub_a.c:71: void stub_silence(void)
;	-----------------------------------------
;	 function stub_silence
;	-----------------------------------------
_stub_silence:
;	src/stub_a.c:73: place = 0;
	mov	_place,#0x00
;	src/stub_a.c:74: }
	ret
;------------------------------------------------------------
;Allocation info for local variables in function 'stub_byte'
;------------------------------------------------------------
;byte                      Allocated to registers r7 
;------------------------------------------------------------
;	src/stub_a.c:76: void stub_byte(uint8_t byte)
;	-----------------------------------------
;	 function stub_byte
;	-----------------------------------------
_stub_byte:
	mov	r7,dpl
;	src/stub_a.c:78: if (!place) {
	mov	a,_place
;	src/stub_a.c:79: place = byte == START;
	jnz	00102$
	cjne	r7,#0xa5,00159$
	inc	a
00159$:
	mov	_place,a
;	src/stub_a.c:80: sum = 0xffff;
	mov	_sum,#0xff
	mov	(_sum + 1),#0xff
;	src/stub_a.c:81: return;
	ret
00102$:
;	src/stub_a.c:83: add(byte);
	mov	dpl,r7
	push	ar7
	lcall	_add
	pop	ar7
;	src/stub_a.c:84: if (place <= 4 + STUB_PAYLOAD)
	mov	a,_place
	add	a,#0xff - 0x0c
	jc	00104$
;	src/stub_a.c:85: stub_frame[place - 1] = byte;
	mov	a,_place
	mov	r6,a
	dec	a
	add	a,#_stub_frame
	mov	r0,a
	mov	@r0,ar7
00104$:
;	src/stub_a.c:87: if (stub_frame[0] > STUB_PAYLOAD || (place == 2 && byte > HEARTBEAT)) {
	mov	a,_stub_frame
	add	a,#0xff - 0x08
	jc	00105$
	mov	a,#0x02
	cjne	a,_place,00106$
	mov	a,r7
	add	a,#0xff - 0x04
	jnc	00106$
00105$:
;	src/stub_a.c:88: place = 0;
	mov	_place,#0x00
;	src/stub_a.c:89: return;
	ret
00106$:
;	src/stub_a.c:92: if (place++ < 6 + stub_frame[0])
	mov	r7,_place
	inc	_place
	mov	r5,_stub_frame
	mov	r6,#0x00
	mov	a,#0x06
	add	a,r5
	mov	r5,a
	clr	a
	addc	a,r6
	mov	r6,a
	mov	r4,#0x00
	clr	c
	mov	a,r7
	subb	a,r5
	mov	a,r4
	xrl	a,#0x80
	mov	b,r6
	xrl	b,#0x80
	subb	a,b
	jnc	00110$
;	src/stub_a.c:93: return;
	ret
00110$:
;	src/stub_a.c:94: place = 0;
	mov	_place,#0x00
;	src/stub_a.c:95: if (sum || !stub_frame[3])
	mov	a,_sum
	orl	a,(_sum + 1)
	jnz	00111$
	mov	a,(_stub_frame + 0x0003)
	mov	r7,a
	jnz	00112$
00111$:
;	src/stub_a.c:96: return;
	ret
00112$:
;	src/stub_a.c:97: if (stub_frame[1] == CALL)
	mov	r6,(_stub_frame + 0x0001)
	cjne	r6,#0x01,00118$
;	src/stub_a.c:98: call();
	ljmp	_call
00118$:
;	src/stub_a.c:99: else if (stub_frame[1] == HEARTBEAT && !stub_frame[0]) {
	cjne	r6,#0x04,00120$
	mov	a,_stub_frame
	jnz	00120$
;	src/stub_a.c:100: last = stub_frame[3];
	mov	_last,r7
;	src/stub_a.c:101: reply(4);
	mov	dpl,#0x04
;	src/stub_a.c:103: }
	ljmp	_reply
00120$:
	ret
	.area CSEG    (CODE)
	.area CONST   (CODE)
	.area XINIT   (CODE)
	.area CABS    (ABS,CODE)

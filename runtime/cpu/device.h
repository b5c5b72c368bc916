/* device.h: what the CPU device needs before its first kernel, beyond pp.h. */
#ifndef DEVICE_H
#define DEVICE_H

void pp_device_start(void);  // once, in the thread that will call the kernels

#endif

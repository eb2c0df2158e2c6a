/* Names and ports in a virtual machine: qemu's user network, and the files it boots. */
#pragma once
#define VM_ADDRESS   "10.0.2.15"
#define VM_GATEWAY   "10.0.2.2" /* the gateway: leads to the loopback of the box around the machine */
#define VM_RESOLVER  "10.0.2.3"
#define VM_PUBLISHED 61100 /* first of the ports by which published ports are forwarded, in the order of their rules */
#define VM_FILES     "/run/pinfold-vm" /* in the box around the machine: kernel and initramfs */

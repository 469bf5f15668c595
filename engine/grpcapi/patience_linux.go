package grpcapi

import (
	"errors"
	"syscall"
)

// wakeAt has readers of a socket sleep until n bytes have arrived.
func wakeAt(socket syscall.RawConn, n int) error {
	var failed error
	err := socket.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, n)
	})
	return errors.Join(err, failed)
}

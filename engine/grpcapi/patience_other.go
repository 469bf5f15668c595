//go:build !linux

package grpcapi

import (
	"errors"
	"syscall"
)

// wakeAt fails: other kernels bound such a number by the socket's buffer.
func wakeAt(syscall.RawConn, int) error { return errors.ErrUnsupported }

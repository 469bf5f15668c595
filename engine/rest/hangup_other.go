//go:build !linux

package rest

import "syscall"

// hangups works on Linux only. On other systems the request of a client that has gone is still
// executed.
type hangups struct{}

func (*hangups) add(syscall.RawConn, *watch) uint64 { return 0 }

func (*hangups) remove(syscall.RawConn, uint64) {}

func (*hangups) close() {}

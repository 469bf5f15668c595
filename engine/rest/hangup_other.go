//go:build !linux

package rest

import "syscall"

// hangups is there on Linux alone: elsewhere the request of a client that has gone is executed.
type hangups struct{}

func (*hangups) add(syscall.RawConn, *watch) uint64 { return 0 }

func (*hangups) remove(syscall.RawConn, uint64) {}

func (*hangups) close() {}

package sharedmemory

import (
	"runtime"
	"runtime/debug"
)

// copied is copy with memory of which a part may not be there: the kernel sends SIGBUS for a page
// behind the end of a file, and for a page of a full file system. It returns false then. Some of the
// bytes may have been copied. Go makes a panic of the signal only in its own code, so this memory never
// reaches C.
func copied(dst, src []byte) (ok bool) { return guarded(func() { copy(dst, src) }) }

// guarded reports whether f ends without such a signal.
func guarded(f func()) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if !isFault(p) {
				panic(p)
			}
			ok = false
		}
	}()
	f()
	return true
}

// isFault reports whether a panic comes from memory that is not there. Such a runtime error has the
// address.
func isFault(p any) bool {
	_, isRuntime := p.(runtime.Error)
	_, hasAddress := p.(interface{ Addr() uintptr })
	return isRuntime && hasAddress
}

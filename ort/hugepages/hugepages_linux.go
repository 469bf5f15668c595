package hugepages

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernel is the folder of the kernel's settings for huge pages
// (Documentation/admin-guide/mm/transhuge.rst).
const kernel = "/sys/kernel/mm/transparent_hugepage/"

// largest is the largest size of a huge page that is used, in bytes. Kernels with small pages of 64
// KiB have huge ones of 512 MiB, which hold other things than a model's weights.
const largest = 32 << 20

// Gather moves the memory of this process that is filled and lies in small pages into huge ones, and
// returns the bytes that are in huge pages then. It takes about 0.3 ms for each MiB that it moves.
// Other threads may use the memory meanwhile.
//
// Without an error it may have moved nothing: the kernel has no huge pages, may not give them
// ("never"), or is short of memory.
func Gather() (int, error) {
	size, err := pageSize()
	if err != nil || size == 0 {
		return 0, err
	}
	list, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	defer list.Close()
	all, err := areas(list)
	if err != nil {
		return 0, err
	}
	moved := 0
	for _, a := range all {
		n, err := gather(a.within(size), size)
		moved += n
		if err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// pageSize returns the size of huge pages in bytes. 0: there are none for this process.
func pageSize() (uintptr, error) {
	mode, err := os.ReadFile(kernel + "enabled")
	if errors.Is(err, os.ErrNotExist) || strings.Contains(string(mode), "[never]") {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(kernel + "hpage_pmd_size")
	if err != nil {
		return 0, err
	}
	size, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || size > largest || size&(size-1) != 0 {
		return 0, err
	}
	return uintptr(size), nil
}

// gather moves the full pages of an area, whose bounds are multiples of size, and returns the bytes
// that are in huge pages then.
func gather(a area, size uintptr) (int, error) {
	moved := 0
	residency := make([]byte, int(size)/os.Getpagesize())
	for ; a.begin < a.end; a.begin += size {
		if err := mincore(a.begin, size, residency); err != nil {
			if errors.Is(err, unix.ENOMEM) {
				continue // the memory was returned meanwhile
			}
			return moved, err
		}
		if !isFull(residency) {
			continue
		}
		switch err := advise(a.begin, size, unix.MADV_COLLAPSE); {
		case err == nil:
			moved += int(size)
		case errors.Is(err, unix.EINVAL):
			// a kernel before 6.1: its own thread moves the memory by and by
			if err := advise(a.begin, size, unix.MADV_HUGEPAGE); err != nil {
				return moved, nil // it has no huge pages for this memory
			}
		}
	}
	return moved, nil
}

// mincore and advise take addresses, since the memory is not Go's.
func mincore(begin, size uintptr, residency []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, begin, size, uintptr(unsafe.Pointer(unsafe.SliceData(residency))))
	return asError(errno)
}

func advise(begin, size uintptr, advice int) error {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, begin, size, uintptr(advice))
	return asError(errno)
}

func asError(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// Package hugepages moves memory that this process has filled into the kernel's huge pages
// (transparent huge pages), so that reading it needs fewer entries of the processor's TLB. Weights of
// models are the memory that pays: each run reads all of them.
//
// ONNX Runtime takes memory from the C library, which asks for huge pages nowhere, and most kernels
// give them only where they are asked for (the mode madvise). So the memory is looked for after the
// fact, in the kernel's list of the process's mappings. It does not matter which allocator filled it.
//
// The package changes no byte and no address. Where the kernel, its administrator or the system has
// no huge pages, it does nothing.
package hugepages

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Variable is an environment variable with which the GNU C library, from 2.35 on, puts large memory into
// huge pages itself, and Tunables its value (malloc.hugetlb in the manual of the GNU C library). For
// a server of others they do what Gather does for ours. One arena for all threads is needed, since
// the arenas of single threads grow in steps that are smaller than a huge page.
const (
	Variable = "GLIBC_TUNABLES"
	Tunables = "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1"
)

// area is a mapping that may have huge pages: private memory without a file.
type area struct{ begin, end uintptr }

// areas reads the list of a process's mappings (/proc/PID/maps, proc_pid_maps(5)), and returns those
// that the process may write, that belong to no file, and whose name does not say that they are
// something special. Memory of Go's own runtime is left out where the kernel keeps names.
func areas(maps io.Reader) ([]area, error) {
	var out []area
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			return nil, fmt.Errorf("cannot read a line of the list of mappings: %q", lines.Text())
		}
		permissions, inode, name := fields[1], fields[4], strings.Join(fields[5:], " ")
		if permissions != "rw-p" || inode != "0" || name != "" && name != "[heap]" {
			continue
		}
		begin, end, _ := strings.Cut(fields[0], "-")
		a, errBegin := strconv.ParseUint(begin, 16, 64)
		b, errEnd := strconv.ParseUint(end, 16, 64)
		if errBegin != nil || errEnd != nil || a > b {
			return nil, fmt.Errorf("cannot read the addresses of a mapping: %q", fields[0])
		}
		out = append(out, area{uintptr(a), uintptr(b)})
	}
	return out, lines.Err()
}

// within returns the part of an area that consists of whole pages of a size, which is a power of two.
func (a area) within(size uintptr) area {
	return area{(a.begin + size - 1) &^ (size - 1), a.end &^ (size - 1)}
}

// isFull reports whether a page of the given number of small pages is filled enough to become a huge
// one. residency has a byte for each small page; the lowest bit says that it is in memory (mincore(2)).
func isFull(residency []byte) bool {
	n := 0
	for _, r := range residency {
		n += int(r & 1)
	}
	return n >= fullEnough*len(residency)/100
}

// fullEnough is the share of a huge page, in percent, that is in memory already before it becomes one.
// The rest of it is memory that the process gets without having asked for it. Of MiniLM, 88 to 92 MiB
// are gathered with 50, 78 to 84 with 75, and 92 to 104 with 25, of which up to 10 are such memory
// (lab/docs/engine.md).
const fullEnough = 50

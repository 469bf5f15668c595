package hugepages

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugeAt returns the bytes in huge pages of an area (smaps, proc_pid_smaps(5)).
func hugeAt(t *testing.T, of area) int {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	bytes, inside := 0, false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var a, b uintptr
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x ", &a, &b); err == nil {
			inside = a < of.end && of.begin < b
			continue
		}
		if text, is := strings.CutPrefix(lines.Text(), "AnonHugePages:"); is && inside {
			var k int
			if _, err := fmt.Sscan(text, &k); err != nil {
				t.Fatal(err)
			}
			bytes += k << 10
		}
	}
	return bytes
}

// mapped returns new memory in small pages, whose first bytes are written.
func mapped(t *testing.T, size, written int) area {
	t.Helper()
	all, err := unix.Mmap(-1, 0, size+os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(all) })
	memory := all[:size]
	if err := unix.Mprotect(all[size:], unix.PROT_NONE); err != nil { // else the kernel joins it to the next one
		t.Fatal(err)
	}
	advise := func(advice int) {
		if err := unix.Madvise(memory, advice); err != nil {
			t.Skipf("the kernel has no huge pages: %v", err)
		}
	}
	advise(unix.MADV_NOHUGEPAGE) // also where they are the rule
	for i := 0; i < written; i += os.Getpagesize() {
		memory[i] = byte(i>>12) | 1
	}
	advise(unix.MADV_HUGEPAGE)
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	return area{begin, begin + uintptr(size)}
}

func TestGather(t *testing.T) {
	t.Parallel()
	size, err := pageSize()
	if err != nil || size == 0 {
		t.Skipf("this process gets no huge pages: %d, %v", size, err)
	}
	const pages = 4
	full, sparse := mapped(t, pages*int(size), pages*int(size)), mapped(t, pages*int(size), int(size)/4)
	if err := advise(full.within(size).begin, size, unix.MADV_COLLAPSE); err != nil {
		t.Skipf("the kernel moves no memory on demand, or is short of it: %v", err)
	}
	moved, err := Gather()
	if err != nil {
		t.Fatal(err)
	}
	// An area whose bounds are anywhere has all but one of its pages within.
	if got, want := hugeAt(t, full), (pages-1)*int(size); got < want || moved < want {
		t.Errorf("%d bytes of full memory are in huge pages, %d in all; want at least %d", got, moved, want)
	}
	if got := hugeAt(t, sparse); got != 0 {
		t.Errorf("%d bytes of memory of which most is not there are in huge pages", got)
	}
	if again, err := Gather(); err != nil || again < moved {
		t.Errorf("then %d bytes, %v; want at least %d as before", again, err, moved)
	}
}

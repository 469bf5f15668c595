package sharedmemory

import (
	"errors"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"tuner/engine/fault"
)

// folder is where shm_open has the files of all keys.
const folder = "/dev/shm/"

// maxKey bounds the bytes of a file's name, as the kernel does.
const maxKey = 255

// mapFile maps a part of the file of a key, of at most most bytes. The file is a regular one in the
// folder itself: as with shm_open, slashes in front of a key are ignored, and no key leads elsewhere.
func mapFile(name, key string, offset, size, most uint64) ([]byte, error) {
	file := strings.TrimLeft(key, "/")
	refused := fault.Errorf(fault.Internal, "Unable to open shared memory region: '%s'", key)
	if file == "" || file == "." || file == ".." || len(file) > maxKey || strings.ContainsAny(file, "/\x00") {
		return nil, refused
	}
	// A pipe would wait for its other end without O_NONBLOCK.
	fd, err := unix.Open(folder+file, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, refused
	}
	defer func() { _ = unix.Close(fd) }() // the mapping stays
	var about unix.Stat_t
	if err := unix.Fstat(fd, &about); err != nil {
		return nil, fault.Errorf(fault.Internal, "Invalid shared memory region: '%s'", key)
	}
	bytes := uint64(about.Size)
	if about.Mode&unix.S_IFMT != unix.S_IFREG || offset > bytes || size > bytes-offset {
		return nil, fault.Errorf(fault.InvalidArgument, "failed to register shared memory region '%s': invalid args", name)
	}
	if size > most {
		return nil, fault.Errorf(fault.Exhausted, "cannot register shared memory region '%s': all regions together may have %d bytes, unregister one first", name, uint64(maxMapped))
	}
	memory, err := unix.Mmap(fd, int64(offset), int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil { // the offset is not that of a page, or the size is 0
		return nil, fault.Errorf(fault.InvalidArgument, "failed to register shared memory region '%s': unable to process address space%s", name, reason(err))
	}
	return memory, nil
}

// reason words an error of the kernel as C does.
func reason(err error) string {
	var number unix.Errno
	if !errors.As(err, &number) {
		return err.Error()
	}
	text := []rune(number.Error())
	text[0] = unicode.ToUpper(text[0])
	return string(text)
}

// unmap frees the memory of a region that was taken out. It may be nil.
func (r *region) unmap() {
	if r != nil {
		_ = unix.Munmap(r.memory) // it fails only for memory that is not mapped
	}
}

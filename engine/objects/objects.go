package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Object is an object in a store.
type Object struct {
	Key  string // within the bucket. One that ends with a slash is a folder
	Size int64  // bytes
	Tag  string // differs from that of any other content: the ETag or the generation
}

// Store is a bucket. Its methods are safe for concurrent use, and end when ctx ends.
type Store interface {
	// List returns the objects whose keys begin with prefix, in any order. flat: all of them. Otherwise
	// those of one level: what lies deeper is one folder. The first error ends the list.
	List(ctx context.Context, prefix string, flat bool) iter.Seq2[Object, error]
	// Read opens an object. If it is not the listed one any more, the error comes here or from a
	// read. The caller closes it.
	Read(ctx context.Context, o Object) (io.ReadCloser, error)
}

// Open connects to the bucket of a location. getenv reads the environment.
func Open(ctx context.Context, l Location, getenv func(string) string) (Store, error) {
	c, err := credentialsOf(l, getenv)
	if err != nil {
		return nil, err
	}
	var s Store
	switch l.Scheme {
	case S3:
		s, err = openS3(l, c, getenv)
	case Google:
		s, err = openGoogle(ctx, l, c, getenv)
	case Azure:
		s, err = openAzure(l, c, getenv)
	default:
		err = errors.New("the store is unknown")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", l, err)
	}
	return s, nil
}

// Bounds of keys, in bytes. The first is that of all three stores, the second that of file systems.
const (
	longestKey     = 1024
	longestSegment = 255
)

// Path returns the path of an object below a prefix of its key, for the file system. It is local: it
// has no .. and no empty parts. A folder's path ends with a slash, and is "" for the prefix itself.
func Path(key, prefix string) (string, error) {
	path, ok := strings.CutPrefix(key, prefix)
	switch {
	case !ok || len(key) > longestKey:
		return "", fmt.Errorf("object %q is not below %q, or its name has more than %d bytes", Shorten(key), prefix, longestKey)
	case path == "":
		return "", nil
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if err := checkSegment(part); err != nil {
			return "", fmt.Errorf("object %q: %w", key, err)
		}
	}
	if !filepath.IsLocal(strings.TrimSuffix(path, "/")) {
		return "", fmt.Errorf("object %q is no path below its repository", key)
	}
	return path, nil
}

// checkSegment refuses a part of a path that is no name of a file on every system.
func checkSegment(part string) error {
	switch {
	case part == "" || part == "." || part == "..":
		return fmt.Errorf("%q cannot be a part of a path", part)
	case len(part) > longestSegment:
		return fmt.Errorf("a part of its path has more than %d bytes", longestSegment)
	case !utf8.ValidString(part) || strings.ContainsRune(part, '\\') || strings.ContainsFunc(part, unicode.IsControl):
		return fmt.Errorf("%q has a character that names of files must not have", part)
	}
	return nil
}

// Shorten cuts a key for a message.
func Shorten(key string) string {
	const most = 200
	if len(key) > most {
		return key[:most] + "…"
	}
	return key
}

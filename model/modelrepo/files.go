package modelrepo

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tuner/internal/durable"
	"tuner/internal/inside"
)

// linkOrCopy creates a file at to: as a hard link if the file system allows it, or else as a copy.
// to must not exist.
func linkOrCopy(from inside.File, to string) error {
	if from.Link(to) == nil {
		return nil
	}
	return duplicate(from, to)
}

// duplicate copies a file durably. It shares blocks if the file system can.
func duplicate(from inside.File, to string) error {
	in, err := from.Open()
	if err != nil {
		return fmt.Errorf("cannot open file %q: %w", from.Path(), durable.Cause(err))
	}
	defer in.Close()
	return create(to, func(out io.Writer) error {
		_, err := io.Copy(out, in)
		return err
	})
}

// writeFile writes a new file durably.
func writeFile(path string, content []byte) error {
	return create(path, func(out io.Writer) error {
		_, err := out.Write(content)
		return err
	})
}

// create makes a new file with the content from fill, and makes it durable.
func create(path string, fill func(io.Writer) error) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		err = fill(out)
		if err == nil {
			err = out.Sync()
		}
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write file %q: %w", path, durable.Cause(err))
	}
	return nil
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	if err := durable.SyncDir(dir); err != nil {
		return fmt.Errorf("cannot sync folder %q: %w", filepath.Clean(dir), durable.Cause(err))
	}
	return nil
}

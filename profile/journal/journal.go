// Package journal is the append-only log of a campaign: `<output>/journal.jsonl`, one JSON record
// per line, a header first, then all events.
//
// It stands between the campaign loop and everything after the campaign. The loop appends an event
// before it learns from it. Resuming, analysis and reports replay the log. The package keeps
// records complete and in order. It does not know their meaning.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"tuner/internal/durable"
)

// FileName is the journal's name in the campaign's output folder.
const FileName = "journal.jsonl"

// Journal is an open journal. It holds the lock until Close. It is not safe for concurrent use.
type Journal struct {
	path     string
	file     durable.File
	lock     *os.File
	header   Header
	size     int64  // bytes of complete, synced records
	seq      int    // number of the last record
	sum      string // checksum that the next record's seal continues
	isBroken bool   // a failed append could not be undone
}

// Entry is a record to write: its kind, and its data's value.
type Entry struct {
	Kind  string
	Value any
}

// Create starts a journal in a folder, with a header and the entries that belong to it. It makes
// the folder if needed, and fills in the header's Format. Either all of them are on disk, or there
// is no journal. The error is fs.ErrExist if the folder has a journal already. It names the other
// process if one is writing there.
func Create(dir string, h Header, entries ...Entry) (*Journal, error) {
	return On(durable.OS{}).Create(dir, h, entries...)
}

// Open locks a folder's journal and returns its records, the header's first. It removes an
// incomplete last line that a crash during an append left. The error is fs.ErrNotExist if there is
// no journal. It names the other process if one is writing there. For a damaged journal it names
// file and line, and changes nothing.
func Open(dir string) (*Journal, []Record, error) { return On(durable.OS{}).Open(dir) }

// Store is a disk for journals. Create and Open use this machine's own.
type Store struct{ disk durable.Disk }

// On returns the store of a disk.
func On(disk durable.Disk) Store { return Store{disk} }

// Create is the function Create on this store.
func (s Store) Create(dir string, h Header, entries ...Entry) (*Journal, error) {
	path := filepath.Join(dir, FileName)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create journal %q: %w", path, err)
	}
	lock, err := acquire(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot create journal %q: %w", path, err)
	}
	j, err := s.create(path, h, entries, lock)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot create journal %q: %w", path, err), durable.Unlock(lock))
	}
	return j, nil
}

func (s Store) create(path string, h Header, entries []Entry, lock *os.File) (*Journal, error) {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return nil, fs.ErrExist
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	h.Format = formatOf(h)
	j := &Journal{path: path, lock: lock, header: h}
	var text []byte
	for _, e := range append([]Entry{{KindHeader, h}}, entries...) {
		line, sum, err := encode(j.seq+1, e.Kind, e.Value, j.sum)
		if err != nil {
			return nil, err
		}
		text = append(text, line...)
		j.seq, j.sum = j.seq+1, sum
	}
	j.size = int64(len(text))
	err := durable.WriteFileOn(s.disk, path, durable.Bytes(text))
	if err == nil {
		j.file, err = s.disk.Append(path)
	}
	return j, err
}

// Open is the function Open on this store.
func (s Store) Open(dir string) (*Journal, []Record, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err != nil { // checked first, since the lock would leave its file in a foreign folder
		return nil, nil, fmt.Errorf("cannot open journal: %w", err)
	}
	lock, err := acquire(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open journal %q: %w", path, err)
	}
	j, records, err := s.open(path, lock)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("cannot open journal: %w", err), durable.Unlock(lock))
	}
	return j, records, nil
}

func (s Store) open(path string, lock *os.File) (*Journal, []Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	c, err := decode(path, data)
	if err != nil {
		return nil, nil, err
	}
	f, err := s.disk.Append(path)
	if err != nil {
		return nil, nil, err
	}
	j := &Journal{path: path, file: f, lock: lock, header: c.header, size: c.size(), seq: len(c.records), sum: c.sum()}
	if c.size() < int64(len(data)) {
		if err := j.cut(); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("cannot cut the torn last line of %q: %w", path, err), f.Close())
		}
	}
	return j, c.records, nil
}

// Read returns the header and the records of a folder's journal, the header's first. It takes no
// lock, so it works while a campaign writes. It skips an incomplete last line. The error is
// fs.ErrNotExist if there is no journal. For a damaged one it names file and line.
func Read(dir string) (Header, []Record, error) {
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		return Header{}, nil, fmt.Errorf("cannot read journal: %w", err)
	}
	c, err := decode(path, data)
	if err != nil {
		return Header{}, nil, fmt.Errorf("cannot read journal: %w", err)
	}
	return c.header, c.records, nil
}

// Header returns the journal's first record.
func (j *Journal) Header() Header { return j.header }

// Append writes one record and returns when it is on disk. After an error the journal still ends
// with a complete record, since Append removes a partial line. If that fails too, all further
// appends are refused, and the next Open removes the line.
func (j *Journal) Append(kind string, v any) error {
	line, sum, err := encode(j.seq+1, kind, v, j.sum)
	switch {
	case err != nil:
		return fmt.Errorf("cannot append %s to journal: %w", kind, err)
	case kind == KindHeader:
		return fmt.Errorf("cannot append %s to journal %q: it has one already", kind, j.path)
	case j.isBroken:
		return fmt.Errorf("cannot append %s to journal %q: an earlier write failed and could not be undone", kind, j.path)
	}
	if err := j.write(line); err != nil {
		if undo := j.cut(); undo != nil {
			j.isBroken = true
			err = errors.Join(err, fmt.Errorf("cannot undo the partial write: %w", undo))
		}
		return fmt.Errorf("cannot append %s to journal %q (%d records are safe%s): %w", kind, j.path, j.seq, remedy(err), err)
	}
	j.size += int64(len(line))
	j.seq, j.sum = j.seq+1, sum
	return nil
}

func (j *Journal) write(line []byte) error {
	if _, err := j.file.Write(line); err != nil {
		return err
	}
	return j.file.Sync()
}

// cut shortens the file to its complete records.
func (j *Journal) cut() error {
	return errors.Join(j.file.Truncate(j.size), j.file.Sync())
}

// formatOf returns the format of a new journal with a header.
func formatOf(h Header) int {
	if len(h.Parts) > 0 {
		return SeveralFormat
	}
	return Format
}

// remedy returns the remedy for a failed write.
func remedy(err error) string {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, full) {
			return "; free some space and run the same command again to resume"
		}
	}
	for _, failed := range []error{syscall.EIO, syscall.EROFS} {
		if errors.Is(err, failed) {
			return "; check the disk and run the same command again to resume"
		}
	}
	return ""
}

// Close releases the lock. Closing twice is safe.
func (j *Journal) Close() error {
	if j.lock == nil {
		return nil
	}
	err := errors.Join(j.file.Close(), durable.Unlock(j.lock))
	j.lock, j.isBroken = nil, true
	if err != nil {
		return fmt.Errorf("cannot close journal %q: %w", j.path, err)
	}
	return nil
}

// encode makes a record's line with its newline. Its seal continues the checksum previous. It
// refuses records that could not be read again.
func encode(seq int, kind string, v any, previous string) (line []byte, sum string, err error) {
	if c, ok := v.(checker); ok {
		if err := c.Check(); err != nil {
			return nil, "", err
		}
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, "", err
	}
	record, err := json.Marshal(Record{Seq: seq, At: time.Now().UTC(), Kind: kind, Data: data})
	if err != nil {
		return nil, "", err
	}
	line, sum = seal(previous, record[:len(record)-1])
	return line, sum, nil
}

package precision

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tuner/internal/checksum"
	"tuner/internal/durable"
	"tuner/model/onnx"
	"tuner/model/onnx/rewrite"
	"tuner/model/precision/accuracy"
)

// cacheFormat changes with everything that makes older entries wrong: the form of receipts, what recipes write, what figures mean.
const cacheFormat = 5

// The files of an entry, a folder that is named by the hash of its key.
const (
	modelName   = "model.onnx"
	receiptName = "receipt.json"
)

// nameLength is the number of the hash's digits in an entry's name.
const nameLength = 32

// newKind begins the name of a folder in which an entry is made.
const newKind = ".new-"

// key is everything that an entry depends on.
type key struct {
	Format    int             `json:"format"`
	Precision string          `json:"precision"`
	Source    string          `json:"source"`          // digest
	Model     string          `json:"model,omitempty"` // digest of a model of the user's own, which is judged alone
	Settings  settings        `json:"settings"`
	Data      string          `json:"data"` // digest
	Limit     *accuracy.Limit `json:"limit,omitempty"`
	MaxKept   float64         `json:"max_kept,omitempty"`
	Provider  string          `json:"provider,omitempty"` // on which nodes were chosen to stay in fp32; "": nowhere
	Tool      string          `json:"tool"`
}

// keyOf returns what the keys of variants have in common.
func (k *Maker) keyOf(precision string) key {
	return key{Format: cacheFormat, Precision: precision, Source: k.digest, Data: k.data, Limit: k.options.Limit, Tool: k.options.Tool}
}

// receipt says what an entry is and what is known of it.
type receipt struct {
	Key       key                        `json:"key"`
	Digest    string                     `json:"digest"` // of the model
	Bytes     int64                      `json:"bytes"`
	Converted int                        `json:"converted"`
	Kept      []KeptNode                 `json:"kept,omitempty"`
	Left      []rewrite.Kept             `json:"left,omitempty"`
	Notes     []string                   `json:"notes,omitempty"`
	Reports   map[string]accuracy.Report `json:"reports"`          // by provider
	Missed    map[string]string          `json:"missed,omitempty"` // by provider: how the limit is missed
}

// entry is a variant in the cache.
type entry struct {
	model *onnx.Model
	receipt
}

// newEntry makes an entry of a model of which nothing is known.
func newEntry(m *onnx.Model) *entry {
	return &entry{model: m, receipt: receipt{Reports: map[string]accuracy.Report{}, Missed: map[string]string{}}}
}

// addReport adds what a provider's outputs showed.
func (e *entry) addReport(provider string, report accuracy.Report, miss string) {
	e.Reports[provider] = report
	if miss != "" {
		e.Missed[provider] = miss
	}
}

// cache is one entry's place.
type cache struct {
	key    key
	folder string // the entry's own, in the folder of all
}

// newCache returns the place of an entry in dir.
func newCache(dir string, k key) (cache, error) {
	sum, err := checksum.OfJSON(k)
	if err != nil {
		return cache{}, fmt.Errorf("cannot name the cache entry: %w", err)
	}
	return cache{k, filepath.Join(dir, sum[:nameLength])}, nil
}

// find returns the entry with its model; nil when there is none that is whole. What is torn or was changed is made again, so
// why it cannot be read does not matter.
func (c cache) find() *entry {
	e := c.findReceipt()
	if e == nil {
		return nil
	}
	model, err := onnx.Read(filepath.Join(c.folder, modelName))
	if err != nil {
		return nil
	}
	if digest, _, err := identify(model); err != nil || digest != e.Digest {
		return nil
	}
	e.model = model
	return e
}

// findReceipt returns the entry without its model; nil when there is none that is whole. What a command of the user's judged is
// never found: what else the command depends on (its program, the files it reads) cannot be known.
func (c cache) findReceipt() *entry {
	if limit := c.key.Limit; limit != nil && limit.Command != "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(c.folder, receiptName))
	if err != nil {
		return nil
	}
	var e entry
	if json.Unmarshal(text, &e.receipt) != nil || e.Reports == nil {
		return nil
	}
	if own, err := newCache(filepath.Dir(c.folder), e.Key); err != nil || own.folder != c.folder {
		return nil // the receipt of another entry
	}
	if e.Missed == nil {
		e.Missed = map[string]string{}
	}
	return &e
}

// put makes the entry with the model of e, whole or not at all, in place of whatever is there; e then has the model as it was
// read back.
func (c cache) put(e *entry) error {
	err := c.write(e)
	if err == nil {
		e.model, err = onnx.Read(filepath.Join(c.folder, modelName))
	}
	if err != nil {
		return fmt.Errorf("cannot keep the variant in the cache %q: %w", filepath.Dir(c.folder), durable.Cause(err))
	}
	return nil
}

func (c cache) write(e *entry) error {
	root := filepath.Dir(c.folder)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	temp, err := durable.NewScratch(root, newKind)
	if err != nil {
		return err
	}
	defer temp.Close() // whatever of it is left
	fresh := filepath.Join(temp.Dir, "entry")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return err
	}
	path := filepath.Join(fresh, modelName)
	if err := e.model.Write(path, 0); err != nil {
		return err
	}
	written, err := onnx.Read(path)
	if err != nil {
		return err
	}
	if e.Digest, e.Bytes, err = identify(written); err != nil {
		return err
	}
	if err := c.writeReceipt(fresh, e); err != nil {
		return err
	}
	if err := os.Rename(c.folder, filepath.Join(temp.Dir, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, c.folder); err != nil && !errors.Is(err, fs.ErrExist) { // there: another process was faster
		return err
	}
	return durable.SyncDir(root)
}

// update writes the receipt of an entry again, or for the first time where a model of the user's own is judged.
func (c cache) update(e *entry) error {
	err := os.MkdirAll(c.folder, 0o755)
	if err == nil {
		err = c.writeReceipt(c.folder, e)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the figures in the cache %q: %w", filepath.Dir(c.folder), durable.Cause(err))
	}
	return nil
}

func (c cache) writeReceipt(folder string, e *entry) error {
	e.Key = c.key
	text, err := json.MarshalIndent(e.receipt, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(folder, receiptName), durable.Bytes(append(text, '\n')))
}

// identify returns a model's digest and the bytes of its files.
func identify(m *onnx.Model) (digest string, size int64, err error) {
	if digest, err = m.Digest(); err != nil {
		return "", 0, err
	}
	info, err := os.Stat(m.Path())
	if err != nil {
		return "", 0, fmt.Errorf("cannot find the model again: %w", err)
	}
	size = info.Size()
	for _, f := range m.ExternalFiles() {
		size += f.Size
	}
	return digest, size, nil
}

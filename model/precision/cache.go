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

// cacheFormat changes with everything that makes older entries wrong: the form of receipts, the
// output of recipes, the meaning of figures.
const cacheFormat = 5

// The files of an entry. Its folder has the hash of its key as its name.
const (
	modelName   = "model.onnx"
	receiptName = "receipt.json"
)

// nameLength is the number of the hash's digits in an entry's name.
const nameLength = 32

// newKind begins the name of a folder in which an entry is made.
const newKind = ".new-"

// key has everything on which an entry depends.
type key struct {
	Format    int             `json:"format"`
	Precision string          `json:"precision"`
	Source    string          `json:"source"`          // digest
	Model     string          `json:"model,omitempty"` // digest of the user's own model, which is only judged
	Settings  settings        `json:"settings"`
	Data      string          `json:"data"` // digest
	Limit     *accuracy.Limit `json:"limit,omitempty"`
	MaxKept   float64         `json:"max_kept,omitempty"`
	// provider for which nodes were chosen to stay in fp32; "": none
	Provider string `json:"provider,omitempty"`
	Tool     string `json:"tool"`
}

// keyOf returns the part that the keys of all variants share.
func (k *Maker) keyOf(precision string) key {
	return key{Format: cacheFormat, Precision: precision, Source: k.digest, Data: k.data, Limit: k.options.Limit, Tool: k.options.Tool}
}

// receipt describes an entry and its known figures.
type receipt struct {
	Key       key                        `json:"key"`
	Digest    string                     `json:"digest"` // of the model
	Bytes     int64                      `json:"bytes"`
	Converted int                        `json:"converted"`
	Kept      []KeptNode                 `json:"kept,omitempty"`
	Left      []rewrite.Kept             `json:"left,omitempty"`
	Notes     []string                   `json:"notes,omitempty"`
	Reports   map[string]accuracy.Report `json:"reports"`          // by provider
	Missed    map[string]string          `json:"missed,omitempty"` // by provider: how it misses the limit
}

// entry is a variant in the cache.
type entry struct {
	model *onnx.Model
	receipt
}

// newEntry makes an entry of a model without figures.
func newEntry(m *onnx.Model) *entry {
	return &entry{model: m, receipt: receipt{Reports: map[string]accuracy.Report{}, Missed: map[string]string{}}}
}

// addReport adds a provider's report.
func (e *entry) addReport(provider string, report accuracy.Report, miss string) {
	e.Reports[provider] = report
	if miss != "" {
		e.Missed[provider] = miss
	}
}

// cache is the place of one entry.
type cache struct {
	key    key
	folder string // the entry's own folder in the cache folder
}

// newCache returns the place of an entry in dir.
func newCache(dir string, k key) (cache, error) {
	sum, err := checksum.OfJSON(k)
	if err != nil {
		return cache{}, fmt.Errorf("cannot name the cache entry: %w", err)
	}
	return cache{k, filepath.Join(dir, sum[:nameLength])}, nil
}

// find returns the entry with its model; nil if there is no complete one. An incomplete or changed
// entry is made again, so the read error does not matter.
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

// findReceipt returns the entry without its model; nil if there is no complete one. It never finds
// entries that a user's command judged, since the command's other dependencies (its program, the
// files it reads) are unknown.
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
		return nil // the receipt belongs to another entry
	}
	if e.Missed == nil {
		e.Missed = map[string]string{}
	}
	return &e
}

// put stores the entry with e's model, completely or not at all, and replaces an existing one. Then
// e has the model as it was read back.
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
	defer temp.Close() // removes the rest
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
	// if it exists, another process was faster
	if err := os.Rename(fresh, c.folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.SyncDir(root)
}

// update rewrites the receipt of an entry. For a user's own model it writes the first one.
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

// identify returns a model's digest and the size of its files in bytes.
func identify(m *onnx.Model) (digest string, size int64, err error) {
	if digest, err = m.Digest(); err != nil {
		return "", 0, err
	}
	info, err := os.Stat(m.Path())
	if err != nil {
		return "", 0, fmt.Errorf("cannot read the size of the model: %w", err)
	}
	size = info.Size()
	for _, f := range m.ExternalFiles() {
		size += f.Size
	}
	return digest, size, nil
}

package sessionoption

import (
	"slices"
	"strings"
)

// Prefix begins the session entries of ONNX Runtime, and the knobs and parameters for them.
const Prefix = "session."

// entry describes a session entry that belongs to no option. ONNX Runtime's releases add entries.
// Those without a row here are passed on unchanged.
type entry struct {
	key    string
	triton bool     // the onnxruntime backend of a stock Triton honours it
	swept  []string // values that `tuner ortsweep` tries if its file has no space
	file   file
}

// file tells whether an entry makes ONNX Runtime read or write a file at any path.
type file int

const (
	byName  file = iota // it does if its key names a file
	yes                 // it does, although its key does not name a file
	neither             // it does not, although its key names a file
)

var entries = []entry{
	{key: "session.use_device_allocator_for_initializers", triton: true},
	{key: "session.dynamic_block_base", swept: []string{"4"}},
	{key: "session.resource_cuda_partitioning_settings", file: yes},
	{key: "session.enable_profiling", file: yes},
	{key: "session.use_external_initializer_file_buffers_directly", file: neither},
}

func entryOf(key string) entry {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.key == key })
	if i < 0 {
		return entry{key: key}
	}
	return entries[i]
}

// IsEntry reports whether a knob or a parameter is a session entry.
func IsEntry(name string) bool { return strings.HasPrefix(name, Prefix) }

// IsKnob reports whether a knob is an option of the table or a session entry.
func IsKnob(name string) bool {
	return IsEntry(name) || index(name) >= 0
}

// OfTriton reports whether the onnxruntime backend of a stock Triton honours an option or a session
// entry.
func OfTriton(name string) bool { return Of(name).Triton || entryOf(name).triton }

// NamesFile reports whether a session entry makes ONNX Runtime read or write a file at any path.
// ONNX Runtime's releases add such entries. So an entry whose key names a file counts as one,
// unless it is known to be a switch.
func NamesFile(key string) bool {
	switch entryOf(key).file {
	case yes:
		return true
	case neither:
		return false
	}
	isNamed := func(after string) bool { return strings.Contains(key, after) }
	return IsEntry(key) && slices.ContainsFunc([]string{"file", "folder", "path"}, isNamed)
}

// Sweep is an option or a session entry with the values that `tuner ortsweep` tries.
type Sweep struct {
	Name   string
	Values []string
}

// Swept lists the values that `tuner ortsweep` tries if its file has no space. Threads are added
// when the number of cores is known.
func Swept() []Sweep {
	var list []Sweep
	for _, o := range table {
		if len(o.Swept) > 0 {
			list = append(list, Sweep{o.Name, o.Swept})
		}
	}
	for _, e := range entries {
		if len(e.swept) > 0 {
			list = append(list, Sweep{e.key, e.swept})
		}
	}
	return list
}

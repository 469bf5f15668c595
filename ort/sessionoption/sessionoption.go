// Package sessionoption holds tuner's knowledge about the options of an ONNX Runtime session. Each
// option that is a knob has one row in table.go. The row has its name in YAML, its values, its
// place in config.pbtxt, and the support by a stock Triton. It also says how ONNX Runtime and
// programs set it. All other code that depends on an option asks its row: profiles, the search,
// config.pbtxt, the engine, `tuner ortsweep`.
//
// The package is a table and its look-ups. It decides nothing, runs nothing, and reads no files.
// docs/how-to/add-a-session-option.md says how to add a row.
package sessionoption

import (
	"slices"
	"strings"
)

// The options that code outside this package names, since it computes with them.
const (
	IntraOpThreads    = "intra_op_threads"
	InterOpThreads    = "inter_op_threads"
	ExecutionMode     = "execution_mode"
	GraphOptimization = "graph_optimization"
	AllowSpinning     = "allow_spinning"
	MemoryArena       = "memory_arena"
	MemoryPattern     = "memory_pattern"
	ShareSession      = "share_session"
)

// Values of these options that code outside this package names.
const (
	Parallel = "parallel" // of ExecutionMode
	Disabled = "disable"  // of GraphOptimization

	On, Off = "true", "false" // of a Switch
)

// The session entries behind AllowSpinning, one for each of ONNX Runtime's thread pools.
const (
	IntraSpinning = "session.intra_op.allow_spinning"
	InterSpinning = "session.inter_op.allow_spinning"
)

// Kind is the kind of values that an option takes.
type Kind int

// The kinds of options.
const (
	Word    Kind = iota // one of a few words
	Switch              // On or Off
	Threads             // a whole number; 0 leaves it to ONNX Runtime
)

// Option is one row of the table.
type Option struct {
	Name  string // in YAML and in output: memory_arena
	About string // a sentence for the reference

	Kind    Kind
	Words   []string // the values of a Word
	Default string   // value of a session that does not set the option

	// The place in config.pbtxt is one of these three.

	Parameter string // a parameter: enable_mem_arena
	IsLevel   bool   // optimization.graph.level
	// parameters that are session entries of ONNX Runtime; all have the same value
	Entries []string

	// Codes are the words in config.pbtxt. A word without a code is written unchanged.
	Codes map[string]string
	// Refusal is the error of Triton's backend for an unknown code. %s stands for the code.
	Refusal string

	// Triton is true if the onnxruntime backend of a stock Triton honours the option.
	Triton bool
	// Entry is the session entry by which newer releases of ONNX Runtime set the option. It would
	// override Parameter or the level, so configurations may not set it. Package ort uses it for
	// options without their own function.
	Entry string
	// OfInstances is true if the option concerns the instances of a model together. ONNX Runtime
	// knows no such option, so it has no Entry, and `tuner ortsweep` refuses it.
	OfInstances bool
	// ChangesResults is true if outputs may differ in their last digits.
	ChangesResults bool

	// Needs is the value of another option that this one needs to have an effect.
	Needs Need
	// Swept are the values that `tuner ortsweep` tries if its file has no space.
	Swept []string
	// Short describes the option in a few words for people. "" if the value is enough.
	Short string

	// The lines that set a value in programs. nil: the line for the session entry Entry.
	Python, CPP, Go Line
}

// Need is a value of another option. The zero value is no need.
type Need struct {
	Option, Value string
	// Idle is the value that stands for all values if the need is not met.
	Idle string
}

// Line makes the line of a program that sets a value. "" if no line is needed.
type Line func(value string) string

// All returns the options that are knobs, in the order in which they are listed.
func All() []Option { return slices.Clone(table) }

// Find returns the row of a name. It returns false if the table has none.
func Find(name string) (Option, bool) {
	if i := index(name); i >= 0 {
		return table[i], true
	}
	return Option{}, false
}

// index returns the place of a name in the table, -1 if it is missing. The search asks it for each
// candidate, so it copies no rows.
func index(name string) int {
	for i := range table {
		if table[i].Name == name {
			return i
		}
	}
	return -1
}

// Of returns the row of a name, which the table must have.
func Of(name string) Option {
	o, _ := Find(name)
	return o
}

// OfParameter returns the row that a parameter of config.pbtxt sets. It returns false
// without one.
func OfParameter(key string) (Option, bool) {
	return first(func(o Option) bool { return key != "" && o.Parameter == key })
}

// OfEntry returns the row whose parameter or level a session entry would override. It returns false
// without one.
func OfEntry(key string) (Option, bool) {
	return first(func(o Option) bool { return key != "" && o.Entry == key })
}

func first(is func(Option) bool) (Option, bool) {
	i := slices.IndexFunc(table, is)
	if i < 0 {
		return Option{}, false
	}
	return table[i], true
}

// Values returns the values of an option, for people and for readers. It is nil for a number.
func (o Option) Values() []string {
	switch o.Kind {
	case Switch:
		return []string{On, Off}
	case Threads:
		return nil
	}
	return o.Words
}

// Code returns a value in the form of config.pbtxt.
func (o Option) Code(value string) string {
	if code, ok := o.Codes[value]; ok {
		return code
	}
	if o.Kind == Switch {
		return map[string]string{On: "1", Off: "0"}[value]
	}
	return value
}

// Decode returns the value for a code in config.pbtxt. It returns false for an unknown code.
func (o Option) Decode(code string) (string, bool) {
	for _, value := range o.Values() {
		if o.Code(value) == code {
			return value, true
		}
	}
	return "", false
}

// Field returns the place in config.pbtxt.
func (o Option) Field() string {
	if o.IsLevel {
		return LevelField
	}
	return o.Parameter
}

// LevelField is the place of an option whose IsLevel is true.
const LevelField = "optimization.graph.level"

// Text describes a value for people in a few words: "2 threads", "no arena".
func (o Option) Text(value string) string {
	switch {
	case o.Kind == Switch && value == Off:
		return "no " + o.Short
	case o.Kind == Switch:
		return o.Short
	case o.Kind == Threads && value == "1":
		value += " thread"
	case o.Kind == Threads:
		value += " threads"
	}
	return strings.TrimSpace(o.Short + " " + value)
}

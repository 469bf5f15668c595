// Package provider holds what tuner knows about the execution providers of ONNX Runtime. Each has one
// row in table.go: its names, what a stock Triton takes, what it needs, its options, how programs
// add it. Everything else that depends on a provider asks its row; nothing outside compares names.
//
// The package is a table and its look-ups. It decides nothing, runs nothing, and reads no files.
// docs/how-to/add-a-provider.md says how to add a row.
package provider

import (
	"cmp"
	"slices"
	"strings"
)

// The providers that an instance has without an accelerator. Every ONNX Runtime has CPU; ONNX Runtime
// puts it last in every session. Triton's onnxruntime backend puts CUDA into every session on a GPU.
const (
	CPU  = "cpu"
	CUDA = "cuda"
)

// Provider is one row of the table.
type Provider struct {
	Name  string // in YAML, in config.pbtxt, in output: openvino
	Title string // in sentences: OpenVINO
	Class string // ONNX Runtime's name without its suffix ExecutionProvider: OpenVINO, Tensorrt

	// GPU says that the provider serves instances of KIND_GPU; its accelerator is a
	// gpu_execution_accelerator then.
	GPU bool
	// Unlisted providers are in no profile and no flag. A configuration may name them all the same,
	// and doctor tries them.
	Unlisted bool
	// Remote providers send the model's inputs to a service. They are never tried.
	Remote bool

	Triton Support
	// Behind is the provider that takes the nodes which this one declines, before CPU does.
	Behind string
	// Flavour is the build that tuner installs to get the provider (Builds). "" if there is none, or
	// if any build has it.
	Flavour string
	// Remedy says what to do if the provider fails although the build has it. "" is the usual remedy.
	Remedy string
	// BuildsEngines says that the provider builds engines while a model loads, which takes minutes.
	BuildsEngines bool

	Options []Option
	Threads Threads
	Device  Device
	// Defaults are values that the provider takes without the option, by ONNX Runtime's names.
	// Programs leave them out.
	Defaults map[string]string
	// Files and Addresses are options that are in no table because no configuration may set them:
	// they make the provider open any file, or hold an address in memory. Options are refused by
	// these names at every provider.
	Files, Addresses []string

	// Generic is the provider's name in ONNX Runtime's generic call that adds one; "" is Name.
	Generic string
	CPP, Go Call
}

// Support says what a stock Triton's onnxruntime backend takes.
type Support int

// The kinds of support.
const (
	Missing Support = iota // it does not load a model that names the provider
	Bare                   // it takes the provider, and none of its options
	Passed                 // it passes options on to ONNX Runtime, which knows the names
	Parsed                 // it parses options, and refuses unknown names and wrong values
)

// TakesOptions reports whether options reach the provider.
func (s Support) TakesOptions() bool { return s >= Passed }

// Threads says how a provider with threads of its own gets their number. The zero value is a provider
// that computes in ONNX Runtime's threads.
type Threads struct {
	Option string // the option for their number
	// Only says that the provider has these threads only: ONNX Runtime's number does not reach it.
	// Otherwise ONNX Runtime's threads run the nodes that the provider declines.
	Only bool
}

// Device is the option that chooses the device which a provider computes on.
type Device struct {
	Option string
	Usual  string // the value with which the provider computes where it does without the option
	Set    bool   // Triton's backend always sets it: to Usual, or to the number of the instance's GPU
}

// Call is the way in which an interface of ONNX Runtime adds a provider.
type Call struct {
	How  How
	Name string // the provider's name in types and functions of the interface
}

// How is a kind of call.
type How int

// The kinds of calls. Package ortsweep/snippet has a template for each.
const (
	Generic    How = iota // the generic call, with the provider's generic name and a map of options
	MapCall               // a call of its own, with a map of options
	ObjectCall            // a call of its own, with an options object
	NativeCall            // the functions of the C interface
	NoCall                // the interface cannot add the provider
)

// All returns the providers that a profile can name, CPU first.
func All() []Provider {
	return slices.DeleteFunc(slices.Clone(table), func(p Provider) bool { return p.Unlisted || p.Remote })
}

// Names returns the names of All.
func Names() []string { return names(All()) }

// OfTriton returns the names of those that a stock Triton has.
func OfTriton() []string {
	return names(slices.DeleteFunc(All(), func(p Provider) bool { return p.Triton == Missing }))
}

func names(list []Provider) []string {
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
	}
	return names
}

// Find returns the row of a name, and false if the table has none.
func Find(name string) (Provider, bool) {
	for i := range table {
		if table[i].Name == name {
			return table[i], true
		}
	}
	return Provider{}, false
}

// Of returns the row of a name. For an unknown name the row has only that name: a provider for CPUs
// without options that a stock Triton lacks.
func Of(name string) Provider {
	if p, known := Find(name); known {
		return p
	}
	return Provider{Name: name, Title: name, Class: name}
}

// OnGPU reports whether the provider of a name serves instances of KIND_GPU.
func OnGPU(name string) bool { return Of(name).GPU }

// classSuffix ends ONNX Runtime's names of execution providers.
const classSuffix = "ExecutionProvider"

// FromORT turns ONNX Runtime's name of a provider into tuner's: OpenVINOExecutionProvider, in any
// case, is openvino.
func FromORT(name string) string {
	return strings.TrimSuffix(strings.ToLower(name), strings.ToLower(classSuffix))
}

// ORTName returns ONNX Runtime's name: OpenVINOExecutionProvider.
func (p Provider) ORTName() string { return p.Class + classSuffix }

// GenericName returns the name in ONNX Runtime's generic call.
func (p Provider) GenericName() string { return cmp.Or(p.Generic, p.Name) }

// NeedsAccelerator reports whether a configuration names the provider as an accelerator. The kind of
// the instances says the others.
func (p Provider) NeedsAccelerator() bool { return p.Name != CPU && p.Name != CUDA }

// HasPoolBeside reports whether the provider has a thread pool of its own beside ONNX Runtime's. The
// engine then gives ONNX Runtime one thread, which does not spin.
func (p Provider) HasPoolBeside() bool { return p.Threads.Option != "" && !p.Threads.Only }

// Option returns the option of a name, and false if the provider has none.
func (p Provider) Option(name string) (Option, bool) {
	for _, o := range p.Options {
		if o.Name == name {
			return o, true
		}
	}
	return Option{}, false
}

// OptionNames lists the options in alphabetical order; nil if there are none.
func (p Provider) OptionNames() []string {
	var names []string
	for _, o := range p.Options {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	return names
}

// LowersPrecision reports whether an option makes the provider compute with fewer bits than the model
// says. Its results then differ from those of an accuracy check without the option.
func (p Provider) LowersPrecision(option, value string) bool {
	o, _ := p.Option(option)
	return o.Lowers != nil && o.Lowers(value)
}

// OpensFile reports whether an option makes any provider read or write a file other than a cache
// below the working folder.
func OpensFile(option, value string) bool {
	return slices.ContainsFunc(table, func(p Provider) bool {
		o, _ := p.Option(option)
		return o.Opens != nil && o.Opens(value) || slices.Contains(p.Files, option)
	})
}

// IsAddress reports whether an option of any provider is an address in memory: a function that the
// provider calls, or a stream that it uses.
func IsAddress(option string) bool {
	return slices.ContainsFunc(table, func(p Provider) bool { return slices.Contains(p.Addresses, option) })
}

// Build is a kind of ONNX Runtime build, a flavour, that tuner installs.
type Build struct {
	Flavour string
	Project string // on the Python package index
	GPU     bool   // it is of use on machines with a GPU only
}

// Builds lists the flavours; the first is the usual one.
func Builds() []Build {
	return []Build{{Flavour: "cpu", Project: "onnxruntime"}, {Flavour: "openvino", Project: "onnxruntime-openvino"},
		{Flavour: "cuda", Project: "onnxruntime-gpu", GPU: true}}
}

// BuildOf returns the build of a flavour, and false for a library of the user's own.
func BuildOf(flavour string) (Build, bool) {
	builds := Builds()
	i := slices.IndexFunc(builds, func(b Build) bool { return b.Flavour == flavour })
	if i < 0 {
		return Build{}, false
	}
	return builds[i], true
}

// Package provider holds tuner's knowledge about the execution providers of ONNX Runtime. Each has
// one row in table.go: its names, the support by a stock Triton, its requirements, its options, and
// how programs add it. All other code that depends on a provider asks its row. No code outside
// compares names.
//
// The package is a table and its look-ups. It decides nothing, runs nothing, and reads no files.
// docs/how-to/add-a-provider.md says how to add a row.
package provider

import (
	"cmp"
	"slices"
	"strings"
)

// The providers of an instance without an accelerator. Every ONNX Runtime has CPU, and puts it last
// in every session. Triton's onnxruntime backend puts CUDA into every session on a GPU.
const (
	CPU  = "cpu"
	CUDA = "cuda"
)

// PlugIn is the provider of a library that the operator names, beside those of ONNX Runtime's library.
const PlugIn = "plugin"

// PlugInDevice is the option that chooses the device of a plug-in provider: CPU, GPU or NPU.
const PlugInDevice = "device_type"

// Provider is one row of the table.
type Provider struct {
	Name  string // in YAML, config.pbtxt and output: openvino
	Title string // in sentences: OpenVINO
	Class string // ONNX Runtime's name without its suffix ExecutionProvider: OpenVINO, Tensorrt

	// GPU is true if the provider serves instances of KIND_GPU. Its accelerator is then a
	// gpu_execution_accelerator.
	GPU bool
	// Unlisted providers are in no profile and no flag. A configuration may still name them, and
	// doctor tries them.
	Unlisted bool
	// Apart is true if the provider is in a library of its own, which the operator names, and not in
	// a build of ONNX Runtime.
	Apart bool
	// Remote providers send the model's inputs to a service. They are never tried.
	Remote bool

	Triton Support
	// Behind is the provider that gets the nodes that this one declines, before CPU.
	Behind string
	// Flavour is the build that tuner installs to get the provider (Builds). It is "" if there is
	// none, or if any build has the provider.
	Flavour string
	// Remedy is the hint if the provider fails although the build has it. "" is the usual remedy.
	Remedy string
	// BuildsEngines is true if the provider builds engines while a model loads, which takes
	// minutes.
	BuildsEngines bool

	Options []Option
	Threads Threads
	Device  Device
	// Defaults are the values that the provider uses if an option is missing, by ONNX Runtime's
	// names. Programs leave them out.
	Defaults map[string]string
	// Files and Addresses are options that no configuration may set, so that they are not in
	// Options. They make the provider open any file, or hold an address in memory. These names are
	// refused at every provider.
	Files, Addresses []string

	// Generic is the provider's name in ONNX Runtime's generic call that adds a provider. "" means
	// Name.
	Generic string
	CPP, Go Call
}

// Support is the support of a provider by a stock Triton's onnxruntime backend.
type Support int

// The kinds of support.
const (
	Missing Support = iota // it does not load a model that names the provider
	Bare                   // it accepts the provider, but none of its options
	Passed                 // it passes options on to ONNX Runtime, which knows the names
	Parsed                 // it parses options, and refuses unknown names and wrong values
)

// TakesOptions reports whether options reach the provider.
func (s Support) TakesOptions() bool { return s >= Passed }

// Threads says how a provider with its own threads gets their number. The zero value is a provider
// that computes in ONNX Runtime's threads.
type Threads struct {
	Option string // the option for their number
	// Only is true if the provider has only these threads, so that ONNX Runtime's number does not
	// reach it. Otherwise ONNX Runtime's threads run the nodes that the provider declines.
	Only bool
}

// Device is the option that chooses the device on which a provider computes.
type Device struct {
	Option string
	Usual  string // the value that is the same as leaving out the option
	// Triton's backend always sets it: to Usual, or to the number of the instance's GPU
	Set bool
}

// Call describes how an interface of ONNX Runtime adds a provider.
type Call struct {
	How  How
	Name string // the provider's name in types and functions of the interface
}

// How is a kind of call.
type How int

// The kinds of calls. Package ortsweep/snippet has a template for each.
const (
	Generic    How = iota // the generic call, with the provider's generic name and a map of options
	MapCall               // a specific call, with a map of options
	ObjectCall            // a specific call, with an options object
	NativeCall            // the functions of the C interface
	NoCall                // the interface cannot add the provider
)

// All returns the providers that a profile can name, CPU first.
func All() []Provider {
	return slices.DeleteFunc(slices.Clone(table), func(p Provider) bool { return p.Unlisted || p.Remote })
}

// Names returns the names of All.
func Names() []string { return names(All()) }

// OfTriton returns the names of the providers that a stock Triton has.
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

// Find returns the row of a name. It returns false if the table has none.
func Find(name string) (Provider, bool) {
	for i := range table {
		if table[i].Name == name {
			return table[i], true
		}
	}
	return Provider{}, false
}

// Of returns the row of a name. For an unknown name the row has only that name. It stands for a
// provider for CPUs without options that a stock Triton lacks.
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

// NeedsAccelerator reports whether a configuration names the provider as an accelerator. CPU and
// CUDA follow from the kind of the instances.
func (p Provider) NeedsAccelerator() bool { return p.Name != CPU && p.Name != CUDA }

// HasPoolBeside reports whether the provider has its own thread pool beside ONNX Runtime's. The
// engine then gives ONNX Runtime one thread, which does not spin.
func (p Provider) HasPoolBeside() bool { return p.Threads.Option != "" && !p.Threads.Only }

// Option returns the option of a name. It returns false if the provider has none.
func (p Provider) Option(name string) (Option, bool) {
	for _, o := range p.Options {
		if o.Name == name {
			return o, true
		}
	}
	return Option{}, false
}

// OptionNames lists the options in alphabetical order. It returns nil if there are none.
func (p Provider) OptionNames() []string {
	var names []string
	for _, o := range p.Options {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	return names
}

// LowersPrecision reports whether an option makes the provider compute with fewer bits than the
// model specifies. Its results then differ from those of an accuracy check without the option.
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

// Build is a kind of ONNX Runtime build, called flavour, that tuner installs.
type Build struct {
	Flavour string
	Project string // on the Python package index
	GPU     bool   // useful only on machines with a GPU
}

// Builds lists the flavours. The first is the usual one.
func Builds() []Build {
	return []Build{{Flavour: "cpu", Project: "onnxruntime"}, {Flavour: "openvino", Project: "onnxruntime-openvino"},
		{Flavour: "cuda", Project: "onnxruntime-gpu", GPU: true}}
}

// BuildOf returns the build of a flavour. It returns false for a library of the user's own.
func BuildOf(flavour string) (Build, bool) {
	builds := Builds()
	i := slices.IndexFunc(builds, func(b Build) bool { return b.Flavour == flavour })
	if i < 0 {
		return Build{}, false
	}
	return builds[i], true
}

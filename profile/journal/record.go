package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"tuner/internal/hostinfo"
	"tuner/internal/words"
	"tuner/model/isolation"
	"tuner/model/mix"
	"tuner/model/precision/accuracy"
	"tuner/ort/addon"
)

// Format is the version of the journal's format that this package writes. It also reads format 1,
// whose records have no seal. The journal of several models has SeveralFormat, whose header has parts.
const (
	SeveralFormat  = 3
	Format         = 2
	unsealedFormat = 1
)

// The kinds of records.
const (
	KindHeader = "header" // Header: only the first record
	// KindEarlier: search.Earlier: a campaign that this one reuses; after the header, before all
	// others
	KindEarlier = "earlier"
	KindSession = "session" // Session: a run of the program begins
	KindTrial   = "trial"   // search.Event: a trial ended
	KindEnd     = "end"     // End: a run of the program ended by itself
)

// Header has everything on which the campaign depends, so that it can be resumed and its reports
// can be reproduced.
type Header struct {
	// version of this format: 2; 3 with several models; 1 for a journal without checksums
	Format  int         `json:"format"`
	Tool    string      `json:"tool"`    // version of tuner
	Created time.Time   `json:"created"` // when the campaign began
	Spec    SpecFile    `json:"spec"`    // the profile.yaml of the first run
	Seed    uint64      `json:"seed"`    // seed of all random choices
	Runtime RuntimeInfo `json:"runtime"` // the ONNX Runtime build of the default configuration
	// values of the knob runtime, the default's first; empty if there is one
	Runtimes  []RuntimeInfo `json:"runtimes,omitempty"`
	Operators []addon.File  `json:"operators,omitempty"` // libraries with operators of the model
	// library with an execution provider, which was named plugin
	ProviderLibrary *addon.File     `json:"provider_library,omitempty"`
	Server          *ServerInfo     `json:"server,omitempty"`  // the measured server; nil: the bundled engine
	Finals          *ServerInfo     `json:"finals,omitempty"`  // the server of the final trials; nil: the same
	Machine         json.RawMessage `json:"machine,omitempty"` // facts of the machine, for reports
	// fingerprint of the machine; figures of machines with different fingerprints are not compared
	Fingerprint string `json:"fingerprint"`
	// the machine on which the campaign began, and the part of it; absent in older journals
	Placement *hostinfo.Placement `json:"placement,omitempty"`
	// the processors that several models may divide among them; absent if they share all
	Processors *isolation.Machine `json:"processors,omitempty"`
	Model      string             `json:"model"`  // name under which the model is served
	Models     []ModelFile        `json:"models"` // one per measured precision
	// variants that were compared with the original, including rejected ones
	Variants []Variant `json:"variants,omitempty"`
	// digest of the inputs of the comparison; "" without variants
	Data       string          `json:"data,omitempty"`
	Requests   *RequestRows    `json:"requests,omitempty"`    // rows from which requests are drawn; nil: random values
	Mix        *RequestMix     `json:"mix,omitempty"`         // kinds of the requests; nil: all have one shape
	BaseConfig string          `json:"base_config,omitempty"` // the config.pbtxt of the default configuration
	Facts      json.RawMessage `json:"facts,omitempty"`       // facts of the model and the machine that decide which combinations are left out
	Earlier    []string        `json:"earlier,omitempty"`     // folders of the campaigns to reuse, ordered by name
	// several models: what belongs to each, in the profile's order. Model is then their names, joined
	// by +. Models, Variants, Data, Requests, Mix and BaseConfig are empty, and Facts has theirs. Of a
	// pipeline they are its stages, and Model, Models and BaseConfig are the pipeline's
	Parts []ModelPart `json:"parts,omitempty"`
}

// ModelPart has the header's fields for one of several models.
type ModelPart struct {
	Model      string       `json:"model"`              // name under which the model is served
	Models     []ModelFile  `json:"models"`             // one per measured precision
	Variants   []Variant    `json:"variants,omitempty"` // variants that were compared with the original, including rejected ones
	Data       string       `json:"data,omitempty"`     // digest of the inputs of the comparison; "" without variants
	Requests   *RequestRows `json:"requests,omitempty"` // rows from which requests are drawn; nil: random values
	Mix        *RequestMix  `json:"mix,omitempty"`      // kinds of the requests; nil: all have one shape
	BaseConfig string       `json:"base_config"`        // the config.pbtxt of the default configuration
}

// IsPipeline reports whether the parts are the stages of a pipeline.
func (h Header) IsPipeline() bool { return len(h.Parts) > 0 && h.BaseConfig != "" }

// Part returns the header of a campaign of one of several models alone, without its facts.
func (h Header) Part(i int) Header {
	p := h.Parts[i]
	h.Parts, h.Facts = nil, nil
	h.Model, h.Models, h.Variants, h.Data, h.Requests, h.Mix, h.BaseConfig = p.Model, p.Models, p.Variants, p.Data, p.Requests, p.Mix, p.BaseConfig
	return h
}

// RequestRows are the user's rows from which requests are drawn.
type RequestRows struct {
	Name   string `json:"name"`   // name of the file or folder
	SHA256 string `json:"sha256"` // digest of the rows, in hexadecimal
	Rows   int    `json:"rows"`   // number of rows
	// sizes of each input in a row, without the batch dimension
	Shapes map[string][]int64 `json:"shapes"`
}

// String names the rows for people.
func (r *RequestRows) String() string {
	if r == nil {
		return "random values"
	}
	return fmt.Sprintf("%s, %s, %s", r.Name, words.Count(r.Rows, "row"), r.SHA256[:min(12, len(r.SHA256))])
}

// RequestMix are the kinds of requests of different shapes.
type RequestMix struct {
	SHA256 string  `json:"sha256"` // digest of the kinds, in hexadecimal
	Kinds  mix.Mix `json:"kinds"`  // in ascending order of their elements; the shares sum to 1
}

// NewMix returns what a journal has of a mix; nil for requests of one shape.
func NewMix(m mix.Mix) *RequestMix {
	if m == nil {
		return nil
	}
	return &RequestMix{m.Digest(), m}
}

// String describes the mix for people.
func (r *RequestMix) String() string {
	if r == nil {
		return "one shape"
	}
	return fmt.Sprintf("%s (%s)", r.Kinds, r.SHA256[:min(12, len(r.SHA256))])
}

// Libraries returns the libraries that servers open beside ONNX Runtime.
func (h Header) Libraries() addon.Files {
	return addon.Files{Operators: h.Operators, Provider: h.ProviderLibrary}
}

// SpecFile is the profile file of the run, with its text.
type SpecFile struct {
	Path   string `json:"path"`   // path of the file
	SHA256 string `json:"sha256"` // digest of the text, in hexadecimal
	Text   string `json:"text"`   // content of the file, without secrets
}

// RuntimeInfo is the ONNX Runtime build that the engine opens.
type RuntimeInfo struct {
	Flavour string `json:"flavour"` // name of the build: cpu, openvino, cuda …, or library for a file that the user named
	Version string `json:"version"` // version of ONNX Runtime
	Library string `json:"library"` // path of the shared library
	// digest of a library that the user named, in hexadecimal, since its name does not identify its
	// content
	SHA256 string `json:"sha256,omitempty"`
}

// Name returns flavour@version, the value of the knob runtime.
func (r RuntimeInfo) Name() string {
	if r.Version == "" {
		return r.Flavour
	}
	return r.Flavour + "@" + r.Version
}

// ServerInfo is a server that trials were measured on.
type ServerInfo struct {
	Mode    string `json:"mode" jsonschema:"enum=bundled,enum=local,enum=remote"` // the mode that the profile names under runner
	Where   string `json:"where,omitempty"`                                       // the program's path, or the server's address
	Name    string `json:"name,omitempty"`                                        // name in its metadata
	Version string `json:"version,omitempty"`                                     // version in its metadata
}

// ReloadsFinals reports whether the finals used a server that was running already. A launch then
// only loads the model.
func (h Header) ReloadsFinals() bool {
	s := h.Server
	if h.Finals != nil {
		s = h.Finals
	}
	return s != nil && s.Mode == "remote"
}

// BundledEngine is the name of the server that is part of tuner.
const BundledEngine = "the bundled engine"

// String names the server for people: "triton 2.51.0 at gpu7:8001".
func (s *ServerInfo) String() string {
	switch {
	case s == nil || s.Mode == "bundled":
		return BundledEngine
	case s.Mode == "remote":
		return fmt.Sprintf("%s %s at %s", s.Name, s.Version, s.Where)
	}
	return fmt.Sprintf("%s %s (%s)", s.Name, s.Version, s.Where)
}

// Variant is the model in one precision, and how its outputs compare with the original model's on
// the cpu provider.
type Variant struct {
	Precision string                     `json:"precision"`           // name of the precision
	Own       bool                       `json:"own,omitempty"`       // the file is the user's own
	Path      string                     `json:"path,omitempty"`      // path of the model file
	SHA256    string                     `json:"sha256,omitempty"`    // digest of the model file, in hexadecimal
	Bytes     int64                      `json:"bytes,omitempty"`     // size of the model file
	Converted int                        `json:"converted,omitempty"` // number of operators in the precision
	Kept      []KeptNode                 `json:"kept,omitempty"`      // operators that stayed in fp32 to keep the limit
	Notes     []string                   `json:"notes,omitempty"`     // what people should know of the conversion, in sentences
	Accuracy  map[string]accuracy.Report `json:"accuracy,omitempty"`  // comparisons with the original, by place: provider, or provider and build
	Rejected  map[string]string          `json:"rejected,omitempty"`  // reasons against the variant, by place; the place "" stands for all
	Late      bool                       `json:"late,omitempty"`      // left out, since the time for variants was over; it stays out when the campaign resumes
}

// NameIn names the variant in a place: "int8 on cpu in openvino@1.24.1". Without a place it is only
// the precision.
func (v Variant) NameIn(place string) string {
	if place == "" {
		return v.Precision
	}
	return v.Precision + " on " + place
}

// KeptNode is an operator of a model and the relative error that it would have in the precision.
type KeptNode struct {
	Node  string  `json:"node"`  // name of the operator
	Error float64 `json:"error"` // the relative error
}

// File returns the model file of a precision, and whether there is one.
func (h Header) File(precision string) (ModelFile, bool) {
	i := slices.IndexFunc(h.Models, func(f ModelFile) bool { return f.Precision == precision })
	if i < 0 {
		return ModelFile{}, false
	}
	return h.Models[i], true
}

// ModelFile is the model file of one precision.
type ModelFile struct {
	Precision string `json:"precision"` // name of the precision
	Path      string `json:"path"`      // path of the file
	SHA256    string `json:"sha256"`    // digest of the file, in hexadecimal
	Bytes     int64  `json:"bytes"`     // size of the file
}

// Session marks the beginning of a run: the first one, or a resumed one.
type Session struct {
	Tool    string        `json:"tool"`    // version of tuner
	Elapsed time.Duration `json:"elapsed"` // campaign time of earlier runs
	// the machine of this run, and the part of it; absent in older journals
	Placement *hostinfo.Placement `json:"placement,omitempty"`
	// the `search.until` of this run, which a flag or a resumed run may change; 0 without one, absent in older journals
	Until *float64 `json:"until,omitempty"`
}

// End says why a run of the program ended, and how the time was spent, including earlier runs of
// the campaign.
type End struct {
	Reason      string   `json:"reason"`              // why the run ended, for people
	Statement   []string `json:"statement,omitempty"` // the strategy's claims about its result, in sentences
	Interrupted bool     `json:"interrupted"`         // the user interrupted the run
	// until the end of the last trial; the sum of the parts below
	Elapsed          time.Duration `json:"elapsed"`
	Windows          time.Duration `json:"windows"`          // load windows
	Launches         time.Duration `json:"launches"`         // starting engine processes
	Reconfigurations time.Duration `json:"reconfigurations"` // loading another configuration into a running engine
	WarmUps          time.Duration `json:"warm_ups"`         // load outside of the windows, until the figures are steady and for the last answers
	Decisions        time.Duration `json:"decisions"`        // the rest: choosing trials, building variants, writing
}

// Record is one line of the journal.
type Record struct {
	Seq      int             `json:"seq"`  // number of the record and of its line, from 1
	At       time.Time       `json:"at"`   // when it was written, in UTC
	Kind     string          `json:"kind"` // kind of the record: header, earlier, session, trial or end
	Data     json.RawMessage `json:"data"` // a value of the kind, see below
	IsSealed bool            `json:"-"`    // it has a valid checksum
}

// checker is a value that can check its plausibility.
type checker interface{ Check() error }

// Decode reads the record's data into a value of its kind. An unknown field is an error in a sealed
// record. Before there were seals, later versions dropped fields that earlier versions had written.
// If the value has a method Check, Decode calls it.
func (r Record) Decode(v any) error {
	err := decodeData(r.Data, v, r.IsSealed)
	if c, ok := v.(checker); ok && err == nil {
		err = c.Check()
	}
	if err != nil {
		return fmt.Errorf("cannot read record %d (%s) of the journal: %w", r.Seq, r.Kind, err)
	}
	return nil
}

// DecodeFacts reads the header's facts into a value.
func (h Header) DecodeFacts(v any) error {
	if len(h.Facts) == 0 {
		return nil
	}
	return decodeData(h.Facts, v, h.HasChecksums())
}

func decodeData(data []byte, v any, isStrict bool) error {
	if isStrict {
		return jsonv2.Unmarshal(data, v, strict())
	}
	return jsonv1.Unmarshal(data, v)
}

// HasChecksums reports whether checksums protect all records of the journal.
func (h Header) HasChecksums() bool { return h.Format > unsealedFormat }

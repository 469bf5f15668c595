package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"tuner/model/precision/accuracy"
)

// Format is the version of the journal's format that this package writes. It reads format 1, too, whose records have no seal.
const (
	Format         = 2
	unsealedFormat = 1
)

// The kinds of records.
const (
	KindHeader  = "header"  // Header: the first record, and only that
	KindEarlier = "earlier" // search.Earlier: a campaign that this one reuses; after the header, before all else
	KindSession = "session" // Session: a run of the program begins
	KindTrial   = "trial"   // search.Event: a trial ended
	KindEnd     = "end"     // End: a run of the program ended by itself
)

// Header says all that the campaign depends on, so that it can be resumed and its reports can be reproduced.
type Header struct {
	Format      int             `json:"format"`
	Tool        string          `json:"tool"` // version of the program
	Created     time.Time       `json:"created"`
	Spec        SpecFile        `json:"spec"`
	Seed        uint64          `json:"seed"`
	Runtime     RuntimeInfo     `json:"runtime"`
	Runtimes    []RuntimeInfo   `json:"runtimes,omitempty"`    // of the knob runtime, the default's first; none for a single one
	Server      *ServerInfo     `json:"server,omitempty"`      // that was measured; nil: the bundled engine
	Finals      *ServerInfo     `json:"finals,omitempty"`      // that the final trials were measured on; nil: the same
	Machine     json.RawMessage `json:"machine,omitempty"`     // facts of the machine, for reports
	Fingerprint string          `json:"fingerprint"`           // of the machine: figures of another one do not compare
	Model       string          `json:"model"`                 // name under which the model is served
	Models      []ModelFile     `json:"models"`                // one per precision that is measured
	Variants    []Variant       `json:"variants,omitempty"`    // what was compared with the original, also what was rejected
	Data        string          `json:"data,omitempty"`        // digest of the inputs that they were compared on; "" without variants
	BaseConfig  string          `json:"base_config,omitempty"` // config.pbtxt of the default configuration
	Facts       json.RawMessage `json:"facts,omitempty"`       // search.Facts that the space was folded with
	Earlier     []string        `json:"earlier,omitempty"`     // folders of the campaigns that were asked to be reused, in order of name
}

// SpecFile is the profile file that was run, with its text.
type SpecFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // of Text, hex
	Text   string `json:"text"`
}

// RuntimeInfo is the ONNX Runtime build that the engine opens.
type RuntimeInfo struct {
	Flavour string `json:"flavour"`
	Version string `json:"version"`
	Library string `json:"library"`          // path
	SHA256  string `json:"sha256,omitempty"` // of a library that the user named, hex: its name does not say what is in it
}

// Name is flavour@version, the value of the knob runtime.
func (r RuntimeInfo) Name() string {
	if r.Version == "" {
		return r.Flavour
	}
	return r.Flavour + "@" + r.Version
}

// ServerInfo is a server that trials were measured on.
type ServerInfo struct {
	Mode    string `json:"mode" jsonschema:"enum=bundled,enum=local,enum=remote"` // as in the profile
	Where   string `json:"where,omitempty"`                                       // the program's path, or the server's address
	Name    string `json:"name,omitempty"`                                        // by its own metadata
	Version string `json:"version,omitempty"`                                     // likewise
}

// ReloadsFinals reports whether the finals ran on a server that runs already: then a launch is no more than a load of the model.
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

// Variant is the model in one precision, and how its outputs compare with the original model's on the cpu provider.
type Variant struct {
	Precision string                     `json:"precision"`
	Own       bool                       `json:"own,omitempty"` // the user's own file
	Path      string                     `json:"path,omitempty"`
	SHA256    string                     `json:"sha256,omitempty"`
	Bytes     int64                      `json:"bytes,omitempty"`
	Converted int                        `json:"converted,omitempty"` // operators in the precision
	Kept      []KeptNode                 `json:"kept,omitempty"`      // operators that stayed in fp32 to keep the limit
	Notes     []string                   `json:"notes,omitempty"`     // what people should know of the conversion, in sentences
	Accuracy  map[string]accuracy.Report `json:"accuracy,omitempty"`  // by place (search.Place)
	Rejected  map[string]string          `json:"rejected,omitempty"`  // why it does not serve, by place; "" for every one
}

// NameIn names the variant in a place: "int8 on cpu in openvino@1.24.1". Without a place it is the precision alone.
func (v Variant) NameIn(place string) string {
	if place == "" {
		return v.Precision
	}
	return v.Precision + " on " + place
}

// KeptNode is an operator of a model and the relative error that it would have in the precision.
type KeptNode struct {
	Node  string  `json:"node"`
	Error float64 `json:"error"`
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
	Precision string `json:"precision"`
	Path      string `json:"path"`
	SHA256    string `json:"sha256"` // of the file, hex
	Bytes     int64  `json:"bytes"`
}

// Session marks the begin of a run of the program, the first or a resumed one.
type Session struct {
	Tool    string        `json:"tool"`    // version of the program
	Elapsed time.Duration `json:"elapsed"` // campaign time that earlier runs used
}

// End says why a run of the program ended, and where its time went, earlier runs of the campaign included.
type End struct {
	Reason           string        `json:"reason"`              // for people
	Statement        []string      `json:"statement,omitempty"` // what the strategy claims of what it found, in sentences
	Interrupted      bool          `json:"interrupted"`
	Elapsed          time.Duration `json:"elapsed"`          // to the end of the last trial; the parts below add up to it
	Windows          time.Duration `json:"windows"`          // load windows
	Launches         time.Duration `json:"launches"`         // starting engine processes
	Reconfigurations time.Duration `json:"reconfigurations"` // loading another configuration into a running one
	WarmUps          time.Duration `json:"warm_ups"`
	Decisions        time.Duration `json:"decisions"` // the rest: choosing, building variants, writing
}

// Record is one line of the journal.
type Record struct {
	Seq      int             `json:"seq"` // from 1: also the number of its line
	At       time.Time       `json:"at"`  // UTC
	Kind     string          `json:"kind"`
	Data     json.RawMessage `json:"data"`
	IsSealed bool            `json:"-"` // it had a checksum, which fits
}

// checker is a value that knows what it cannot be.
type checker interface{ Check() error }

// Decode reads the record's data into a value of its kind. A field that is not known is an error in a sealed record; before there were seals, versions
// of this program left fields out that they had written. A value with a method Check is asked whether it may be what was recorded.
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

// HasChecksums reports whether the journal proves of all its records that they are what was written.
func (h Header) HasChecksums() bool { return h.Format > unsealedFormat }

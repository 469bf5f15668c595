// Package record defines the records that the pods of a fleet deliver: the journal of each campaign as
// segments, and a result that says which attempt counts. A record is a ConfigMap of Kubernetes: immutable, created
// once, under a name that follows from what it holds. So sending it twice does no harm, and of two
// attempts of one item the first result counts; the API server decides which that is.
//
// The package makes and reads these records and joins them. It sends nothing (package worker) and
// asks no cluster (package cluster).
package record

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"tuner/internal/hostinfo"
)

// The labels of a fleet's objects.
const (
	LabelRun     = "tuner.dev/run"
	LabelMachine = "tuner.dev/machine"
	LabelStage   = "tuner.dev/stage"  // of the objects of further campaigns: name of the run that they belong to
	LabelKind    = "tuner.dev/record" // KindSegment or KindResult
	LabelEnd     = "tuner.dev/end"    // of a segment: bytes of the journal up to its end. Lists have it without the content
)

// The kinds of records.
const (
	KindSegment = "segment"
	KindResult  = "result"
)

// MostBytes is the largest size of a segment's compressed content. A ConfigMap holds 1 MiB, in which
// the API server counts names and labels too.
const MostBytes = 900 << 10

// longestSegment bounds what a segment unfolds into. A worker never puts more into one.
const longestSegment = 64 << 20

// JobName names the job of a type of machine.
func JobName(run, machine string) string { return run + "-s1-" + machine }

// Item names an item of a job.
type Item struct {
	Job   string // name of the job
	Index int    // completion index in the job
}

func (i Item) String() string { return i.Job + "-" + strconv.Itoa(i.Index) }

// Attempt is one pod that worked on an item.
type Attempt struct {
	Item
	UID string // of the pod
}

// shortUID is the part of a pod's UID in the names of its segments.
func (a Attempt) shortUID() string { return a.UID[:min(8, len(a.UID))] }

// segmentMark ends the item in the name of a segment.
const segmentMark = "-seg-"

// segmentName names a segment of an attempt, from 0.
func (a Attempt) segmentName(ordinal int) string {
	return fmt.Sprintf("%s%s%s-%04d", a.Item, segmentMark, a.shortUID(), ordinal)
}

// resultName names the result of an item. It does not contain the attempt, so only one can exist.
func (i Item) resultName() string { return i.String() + "-result" }

// Segment is a part of a journal: the bytes from From, of which there are len(Text).
type Segment struct {
	Attempt
	Ordinal int
	From    int64
	Text    []byte
}

// segmentMeta is the description of a segment in its ConfigMap.
type segmentMeta struct {
	Job     string `json:"job"`
	Index   int    `json:"index"`
	Attempt string `json:"attempt"` // UID of the pod
	Ordinal int    `json:"ordinal"` // number of the segment, from 0
	From    int64  `json:"from"`    // first byte
	Bytes   int    `json:"bytes"`   // number of bytes
	SHA256  string `json:"sha256"`  // of these bytes
}

// Result says that an attempt finished an item.
type Result struct {
	Job       string             `json:"job"`       // name of the job
	Index     int                `json:"index"`     // completion index
	Attempt   string             `json:"attempt"`   // UID of the pod
	Pod       string             `json:"pod"`       // name of the pod
	Model     string             `json:"model"`     // name of the model
	Machine   string             `json:"machine"`   // name of the machine type
	Repeat    int                `json:"repeat"`    // number of the machine of the type, from 1
	Placement hostinfo.Placement `json:"placement"` // where it ran
	Tool      string             `json:"tool"`      // version of tuner
	Exit      int                `json:"exit"`      // exit code of the campaign: 0, or 5 if nothing satisfies the constraints
	Bytes     int64              `json:"bytes"`     // size of the journal
	Segments  int                `json:"segments"`  // number of its segments
	SHA256    string             `json:"sha256"`    // digest of the journal
	Seconds   float64            `json:"seconds"`   // time of the pod, on its own clock
	Ended     time.Time          `json:"ended"`     // when it ended, on the node's clock
	// Hopeless says why the user's side ended the campaign early. The journal is then the part that had
	// been delivered. Absent for campaigns that ended by themselves
	Hopeless string `json:"hopeless,omitempty"`
}

// Of returns the item of a result.
func (r Result) Of() Item { return Item{r.Job, r.Index} }

// ConfigMap is a record as Kubernetes keeps it.
type ConfigMap struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   Metadata          `json:"metadata"`
	Immutable  bool              `json:"immutable"`
	Data       map[string]string `json:"data,omitempty"`
	BinaryData map[string][]byte `json:"binaryData,omitempty"`
}

// Metadata has the fields that records use.
type Metadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// The names in a record's data.
const (
	keyMeta    = "meta.json"
	keyJournal = "journal.gz"
	keyResult  = "result.json"
)

// newMap makes a record's ConfigMap.
func newMap(name, run, machine, kind string) ConfigMap {
	return ConfigMap{APIVersion: "v1", Kind: "ConfigMap", Immutable: true, Data: map[string]string{},
		Metadata: Metadata{Name: name, Labels: map[string]string{LabelRun: run, LabelMachine: machine, LabelKind: kind}}}
}

// ConfigMap makes the record of a segment. It is false if the content is too large for one.
func (s Segment) ConfigMap(run, machine string) (ConfigMap, bool, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed) // without a time, so the same bytes give the same record
	if _, err := w.Write(s.Text); err != nil {
		return ConfigMap{}, false, err
	}
	if err := w.Close(); err != nil {
		return ConfigMap{}, false, err
	}
	if packed.Len() > MostBytes || len(s.Text) > longestSegment {
		return ConfigMap{}, false, nil
	}
	meta, err := json.Marshal(segmentMeta{s.Job, s.Index, s.UID, s.Ordinal, s.From, len(s.Text), sum(s.Text)})
	if err != nil {
		return ConfigMap{}, false, err
	}
	c := newMap(s.segmentName(s.Ordinal), run, machine, KindSegment)
	c.Metadata.Labels[LabelEnd] = strconv.FormatInt(s.From+int64(len(s.Text)), 10)
	c.Data[keyMeta], c.BinaryData = string(meta), map[string][]byte{keyJournal: packed.Bytes()}
	return c, true, nil
}

// ConfigMap makes the record of a result.
func (r Result) ConfigMap(run string) (ConfigMap, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return ConfigMap{}, fmt.Errorf("cannot encode the result of %s: %w", r.Of(), err)
	}
	c := newMap(r.Of().resultName(), run, r.Machine, KindResult)
	c.Data[keyResult] = string(text)
	return c, nil
}

// segment reads a segment's record. A record that contradicts itself is an error: somebody else than
// a worker wrote it.
func (c ConfigMap) segment() (Segment, error) {
	var m segmentMeta
	if err := json.Unmarshal([]byte(c.Data[keyMeta]), &m); err != nil {
		return Segment{}, c.damaged(err)
	}
	s := Segment{Attempt: Attempt{Item{m.Job, m.Index}, m.Attempt}, Ordinal: m.Ordinal, From: m.From}
	if m.Bytes < 0 || m.Bytes > longestSegment || m.From < 0 {
		return Segment{}, c.damaged(fmt.Errorf("it says that it has %d bytes from byte %d", m.Bytes, m.From))
	}
	if c.Metadata.Name != s.segmentName(s.Ordinal) {
		return Segment{}, c.damaged(fmt.Errorf("it says that it is %q", s.segmentName(s.Ordinal)))
	}
	r, err := gzip.NewReader(bytes.NewReader(c.BinaryData[keyJournal]))
	if err != nil {
		return Segment{}, c.damaged(err)
	}
	if s.Text, err = io.ReadAll(io.LimitReader(r, int64(m.Bytes)+1)); err != nil {
		return Segment{}, c.damaged(err)
	}
	if len(s.Text) != m.Bytes || sum(s.Text) != m.SHA256 {
		return Segment{}, c.damaged(fmt.Errorf("its content has not the digest that it says"))
	}
	return s, nil
}

// result reads a result's record.
func (c ConfigMap) result() (Result, error) {
	var r Result
	if err := json.Unmarshal([]byte(c.Data[keyResult]), &r); err != nil {
		return r, c.damaged(err)
	}
	if c.Metadata.Name != r.Of().resultName() {
		return r, c.damaged(fmt.Errorf("it says that it is %q", r.Of().resultName()))
	}
	return r, nil
}

func (c ConfigMap) damaged(err error) error {
	return fmt.Errorf("cannot use the ConfigMap %q, which has the labels of a record: %w", c.Metadata.Name, err)
}

func sum(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}

// Digest returns the digest of a journal, as a Result has it.
func Digest(text []byte) string { return sum(text) }

package trace

import (
	"errors"
	"strconv"
	"sync"

	"tuner/engine/fault"
)

// Level says what is recorded: a sum of the constants.
type Level int

// What is recorded. The numbers are Triton's.
const (
	LevelOff        Level = 0
	LevelTimestamps Level = 4 // moments
	LevelTensors    Level = 8 // inputs and outputs
)

// Mode says where traces go.
type Mode int

const (
	ModeTriton        Mode = iota // to files
	ModeOpenTelemetry             // to a collector
)

// String returns the mode's name.
func (m Mode) String() string {
	if m == ModeOpenTelemetry {
		return "opentelemetry"
	}
	return "triton"
}

// Config has the settings with which a server starts.
type Config struct {
	Level        Level
	Rate         uint32 // one of so many requests is traced; 0: only those that bring a trace context
	Count        int32  // traces that are still to be made; -1: no limit
	LogFrequency uint32 // traces in each numbered file; 0: all in one file
	File         string
	Mode         Mode
	Options      []Option // of the mode, for those who ask
}

// Option is a setting of a mode.
type Option struct{ Name, Value string }

// Default is the configuration of a server without options.
func Default() Config { return Config{Rate: 1000, Count: -1} }

// Pairs lists the settings by the names and with the values of the trace extension.
func (c Config) Pairs() []Pair {
	level := []string{"OFF"}
	if c.Level != LevelOff {
		level = nil
		if c.Level&LevelTimestamps != 0 {
			level = append(level, "TIMESTAMPS")
		}
		if c.Level&LevelTensors != 0 {
			level = append(level, "TENSORS")
		}
	}
	list := []Pair{
		{KeyLevel, level},
		{keyRate, []string{strconv.FormatUint(uint64(c.Rate), 10)}},
		{keyCount, []string{strconv.Itoa(int(c.Count))}},
	}
	if c.Mode == ModeTriton {
		list = append(list, Pair{keyFrequency, []string{strconv.FormatUint(uint64(c.LogFrequency), 10)}}, Pair{keyFile, []string{c.File}})
	}
	list = append(list, Pair{"trace_mode", []string{c.Mode.String()}})
	for _, o := range c.Options {
		list = append(list, Pair{o.Name, []string{o.Value}})
	}
	return list
}

// Pair is a setting with its values.
type Pair struct {
	Name   string
	Values []string
}

// check refuses settings with which nothing could be traced, though the level is not OFF. The texts
// are Triton's.
func (c Config) check() error {
	var why string
	switch {
	case c.Level == LevelOff:
		return nil
	case c.Rate == 0:
		why = "sample rate must be non-zero"
	case c.Mode == ModeTriton && c.File == "":
		why = "trace file name is not given"
	case c.Count != 0:
		return nil
	}
	return fault.Errorf(fault.InvalidArgument, "Attempting to set invalid trace setting :%s", why)
}

// setting is one state of the settings of the server or of a model. An update makes another one, so
// that a trace keeps the setting under which it was sampled.
type setting struct {
	config    Config // Count is that of the beginning
	specified fields // that do not follow the settings above
	sink      *sink  // used by the tracer's goroutine alone

	mu      sync.Mutex
	left    int32  // of Count
	samples uint64 // requests that asked
	made    int64  // traces that count
	live    int64  // traces that are not written
	isUsed  bool   // there have been traces
	retired bool   // another one has taken its place
}

func newSetting(c Config, specified fields) *setting {
	return &setting{config: c, specified: specified, left: c.Count, sink: &sink{}}
}

// values returns the settings. Count is the number of traces that are still to be made.
func (s *setting) values() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.config
	c.Count = s.left
	return c
}

// sample decides whether a request is traced. The rules are those of Triton's
// TraceSetting::SampleTrace. A request that brings a trace context is traced whatever rate and count
// are.
func (s *setting) sample(force bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	hit := false
	if s.config.Rate != 0 {
		isValid := s.config.Level != LevelOff && (s.config.Mode != ModeTriton || s.config.File != "") && s.left != 0
		if !isValid && !force {
			return false
		}
		s.samples++
		hit = s.samples%uint64(s.config.Rate) == 0
		switch {
		case hit && s.left > 0:
			s.left--
			s.made++
		case hit && s.left == 0:
			hit = false
		}
	}
	if !hit && !force {
		return false
	}
	s.live++
	s.isUsed = true
	return true
}

// written notes that a trace has been written. It reports whether nothing more will come.
func (s *setting) written() (isLast bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live--
	return s.retired && s.live == 0
}

// retire notes that another setting has taken the place of s. It reports whether all of its traces
// are written, if there have been any.
func (s *setting) retire() (isLast bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = true
	return s.isUsed && s.live == 0
}

// isFull reports whether all traces that the count allows are among the n that have been written.
func (s *setting) isFull(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left == 0 && n == s.made
}

// fields are settings that an update may change.
type fields int

const (
	fieldLevel fields = 1 << iota
	fieldRate
	fieldCount
	fieldFrequency
)

// Names of the settings in the trace extension.
const (
	KeyLevel     = "trace_level" // the only one with several values
	keyRate      = "trace_rate"
	keyCount     = "trace_count"
	keyFrequency = "log_frequency"
	keyFile      = "trace_file"
)

// Update is a change of settings.
type Update struct {
	set, clear fields
	to         Config
}

// Source has the changes that a client asks for.
type Source struct {
	// Find looks for a setting. Without values it is cleared, if there is one.
	Find func(name string) (values []string, found bool, err error)
	// between "got:" and a count that is too small: Triton's front ends differ in it
	Gap string
}

// Read reads an update. The order of the checks and the texts of errors are Triton's.
func Read(from Source) (Update, error) {
	var u Update
	if _, found, err := from.Find(keyFile); err != nil {
		return u, err
	} else if found {
		return u, fault.Errorf(fault.Unsupported, "trace file location can not be updated through network protocol")
	}
	if err := u.readLevel(from); err != nil {
		return u, err
	}
	for _, key := range []string{keyRate, keyCount, keyFrequency} {
		if err := u.readNumber(from, key); err != nil {
			return u, err
		}
	}
	return u, nil
}

// readLevel reads the level. As in Triton, a name that is unknown changes nothing.
func (u *Update) readLevel(from Source) error {
	values, found, err := from.Find(KeyLevel)
	switch {
	case err != nil || !found:
		return err
	case values == nil:
		u.clear |= fieldLevel
		return nil
	}
	for _, value := range values {
		switch value {
		case "OFF":
			if len(values) > 1 {
				return fault.Errorf(fault.InvalidArgument, "Expect only one trace level 'OFF' is specified")
			}
			u.to.Level = LevelOff
		case "TIMESTAMPS":
			u.to.Level |= LevelTimestamps
		case "TENSORS":
			u.to.Level |= LevelTensors
		default:
			continue
		}
		u.set |= fieldLevel
	}
	return nil
}

// readNumber reads a setting that is a number.
func (u *Update) readNumber(from Source, key string) error {
	values, found, err := from.Find(key)
	if err != nil || !found {
		return err
	}
	field := map[string]fields{keyRate: fieldRate, keyCount: fieldCount, keyFrequency: fieldFrequency}[key]
	switch len(values) {
	case 0:
		u.clear |= field
		return nil
	case 1:
	default:
		return fault.Errorf(fault.InvalidArgument, "expect only 1 value for '%s'", key)
	}
	value := values[0]
	n, err := readInt(value)
	low, high := "0", "4294967295"
	if key == keyCount {
		low, high = "-1", "2147483647"
	}
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return fault.Errorf(fault.InvalidArgument, "Unable to parse '%s', got: %s", key, value)
	case err != nil:
		return fault.Errorf(fault.InvalidArgument, "Unable to parse '%s', value is out of range [ %s, %s ], got: %s", key, low, high, value)
	case key == keyCount && n < -1:
		return fault.Errorf(fault.InvalidArgument, "Unable to parse 'trace_count'. Expecting value >= -1, got:%s%s", from.Gap, value)
	}
	u.set |= field
	switch key {
	case keyRate:
		u.to.Rate = uint32(n)
	case keyCount:
		u.to.Count = n
	default:
		u.to.LogFrequency = uint32(n)
	}
	return nil
}

// readInt reads a number as C++'s stoi does: after white space, up to the first character that does
// not belong to it. Rates and frequencies are read so, too, and a negative one becomes a large one.
func readInt(text string) (int32, error) {
	i := 0
	for i < len(text) && (text[i] == ' ' || text[i] >= '\t' && text[i] <= '\r') {
		i++
	}
	end := i
	if end < len(text) && (text[end] == '+' || text[end] == '-') {
		end++
	}
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(text[i:end], 10, 32)
	return int32(n), err
}

// apply returns the settings after an update. above has the settings that fields without a value of
// their own follow.
func (u Update) apply(current *setting, above Config) (Config, fields) {
	c := above
	var specified fields
	var own Config
	if current != nil {
		specified, own = current.specified, current.values()
	}
	specified = (specified | u.set) &^ u.clear
	choose := func(f fields, to func(from *Config)) {
		switch {
		case specified&f == 0:
		case u.set&f != 0:
			to(&u.to)
		default:
			to(&own)
		}
	}
	choose(fieldLevel, func(from *Config) { c.Level = from.Level })
	choose(fieldRate, func(from *Config) { c.Rate = from.Rate })
	choose(fieldCount, func(from *Config) { c.Count = from.Count })
	choose(fieldFrequency, func(from *Config) { c.LogFrequency = from.LogFrequency })
	return c, specified
}

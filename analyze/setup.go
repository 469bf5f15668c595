package analyze

import (
	"time"

	"tuner/model/modelconfig"
	"tuner/ort/sessionoption"
	"tuner/profile/journal"
	"tuner/search"
	"tuner/spec/knobs"
)

// setupOf reads the setup of a configuration as it is served.
func setupOf(h journal.Header, candidate search.Candidate, deployed *modelconfig.Config) (Setup, error) {
	options, err := modelconfig.ORTOptions(deployed)
	if err != nil {
		return Setup{}, err
	}
	s := Setup{
		Provider:       knobs.Provider(deployed, options),
		Runtime:        h.Runtime.Name(),
		Precision:      Precision(h.Models, candidate),
		IntraOpThreads: options.Settings.Whole(sessionoption.IntraOpThreads),
		MaxBatchSize:   int(deployed.GetMaxBatchSize()),
		QueueDelay:     time.Duration(deployed.GetDynamicBatching().GetMaxQueueDelayMicroseconds()) * time.Microsecond,
	}
	if b := deployed.GetBackend(); b != "" && b != modelconfig.Backend {
		s.IntraOpThreads = -1 // the backend's own matter
	}
	if v, ok := candidate.Get(search.KnobRuntime); ok {
		s.Runtime = string(v)
	}
	if h.Server != nil {
		s.Runtime = "" // the server's own runtime
	}
	for _, g := range deployed.GetInstanceGroup() {
		s.Instances += max(1, int(g.GetCount()))
	}
	s.Instances = max(1, s.Instances)
	return s, nil
}

// Precision returns the precision of a candidate's model file. For the default, that is the
// campaign's first model file.
func Precision(models []journal.ModelFile, candidate search.Candidate) string {
	if v, ok := candidate.Get(search.KnobPrecision); ok {
		return string(v)
	}
	if len(models) > 0 {
		return models[0].Precision
	}
	return ""
}

package flags

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tuner/adaptive"
	"tuner/engine/ratelimit"
	"tuner/internal/durable"
	"tuner/internal/exit"
)

// Bounds of options. Nobody polls less often, or retries more often, by intention.
const (
	longestPoll = 365 * 24 * 3600 // seconds
	mostRetries = 1000
)

// modelOptions are the options that say how models are found, loaded and limited.
type modelOptions struct {
	configName  string
	retries     uint
	pollSeconds int
	namespacing bool
	adaptive    string // file of a table
	rateLimit   string
	resources   []string
}

func (o *modelOptions) flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.configName, "model-config-name", "", "read configs/NAME.pbtxt of the models that have it, not config.pbtxt")
	flags.UintVar(&o.retries, "model-load-retry-count", 0, "how often a model that fails to load is tried again")
	flags.IntVar(&o.pollSeconds, "repository-poll-secs", 15, "with --model-control-mode=poll: seconds between looks at the repositories; 0: only at start")
	boolFlag(flags, &o.namespacing, "model-namespacing", false, "load models of the same name from several repositories; requests for such a name are refused")
	flags.StringVar(&o.adaptive, "adaptive", "", "`file` of 'tuner plan --format adaptive': the model changes its batching and instances with its load, where the plan says that it pays")
	flags.StringVar(&o.rateLimit, "rate-limit", "off", "execution_count: instances execute only while they hold the resources of their rate_limiter; off: at once")
	flags.StringArrayVar(&o.resources, "rate-limit-resource", nil, "NAME:COUNT[:DEVICE]: amount of a resource; may be repeated (default: the most that one instance needs)")
}

func (o *modelOptions) problems() (problems []string) {
	if o.retries > mostRetries {
		problems = append(problems, fmt.Sprintf("--model-load-retry-count=%d must be between 0 and %d", o.retries, mostRetries))
	}
	if o.pollSeconds < 0 || o.pollSeconds > longestPoll {
		problems = append(problems, fmt.Sprintf("--repository-poll-secs=%d must be between 0 and %d", o.pollSeconds, longestPoll))
	}
	if o.configName != filepath.Base(o.configName) && o.configName != "" {
		problems = append(problems, fmt.Sprintf("--model-config-name=%q must be the name of a file in the folder configs of models, without .pbtxt", o.configName))
	}
	return problems
}

// PollInterval returns the time between looks at the repositories. 0: there are none.
func (o *Options) PollInterval() time.Duration {
	if !strings.EqualFold(o.controlMode, "poll") {
		return 0
	}
	return time.Duration(o.models.pollSeconds) * time.Second
}

// Adaptive reads the table of configurations of --adaptive; nil without the flag.
func (o *Options) Adaptive() (*adaptive.Table, error) {
	file := o.models.adaptive
	if file == "" {
		return nil, nil
	}
	if !strings.EqualFold(o.controlMode, "none") {
		return nil, exit.Usagef("--adaptive needs --model-control-mode=none, since the mode %s lets others change the model", o.controlMode)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.Usagef("--adaptive=%q: cannot read: %w", file, durable.Cause(err))
	}
	t, err := adaptive.Parse(file, text)
	if err != nil {
		return nil, exit.Usagef("--adaptive: %w", err)
	}
	return &t, nil
}

// LoadThreads returns the number of models that are loaded at the same time.
func (o *Options) LoadThreads() int { return o.loadThreads }

// limiter makes the limiter of executions, nil if they have no limit.
func (o *modelOptions) limiter() (*ratelimit.Limiter, error) {
	var capacities []ratelimit.Capacity
	for _, text := range o.resources {
		c, err := parseResource(text)
		if err != nil {
			return nil, err
		}
		capacities = append(capacities, c)
	}
	switch strings.ToLower(o.rateLimit) {
	case "off":
		return nil, nil
	case "execution_count":
		return ratelimit.New(capacities), nil
	}
	return nil, exit.Usagef("--rate-limit=%q: use execution_count or off", o.rateLimit)
}

// parseResource reads NAME:COUNT[:DEVICE].
func parseResource(text string) (ratelimit.Capacity, error) {
	parts := strings.Split(text, ":")
	bad := exit.Usagef("--rate-limit-resource option format is '<resource_name>:<count>:<device>' or '<resource_name>:<count>'. Got %s", text)
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" {
		return ratelimit.Capacity{}, bad
	}
	c := ratelimit.Capacity{Name: parts[0], Device: ratelimit.AllDevices}
	var err error
	if c.Count, err = strconv.Atoi(parts[1]); err != nil || c.Count < 0 {
		return ratelimit.Capacity{}, bad
	}
	if len(parts) == 3 {
		if c.Device, err = strconv.Atoi(parts[2]); err != nil || c.Device < 0 {
			return ratelimit.Capacity{}, bad
		}
	}
	return c, nil
}

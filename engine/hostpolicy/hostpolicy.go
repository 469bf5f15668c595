// Package hostpolicy chooses the cores and the memory of a model's instances, and binds threads to
// them. It stands below package engine, which looks up the policy of each instance. It knows
// neither models nor requests.
package hostpolicy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NoNode is the Node of a policy that leaves memory to the operating system.
const NoNode = -1

// maxCores is the number of cores that a set of the operating system can name.
const maxCores = 1024

// maxNodes is the number of NUMA nodes from which a policy can choose: a mask of one word, as
// Triton's.
const maxNodes = 64

// A Policy is the set of cores and the memory of instances. Instance groups choose one by name.
// Otherwise they have the one named after their kind: cpu, gpu_<id>, model.
type Policy struct {
	Name  string
	Cores []int // ascending; empty: those of Node, else any
	Node  int   // NUMA node of the memory; NoNode: any
}

// Any returns a policy that binds nothing.
func Any() Policy { return Policy{Node: NoNode} }

// Find returns the policy with that name. If no option defines the name, it returns Any, which
// binds nothing, as in Triton.
func Find(policies []Policy, name string) Policy {
	if i := slices.IndexFunc(policies, func(p Policy) bool { return p.Name == name }); i >= 0 {
		return policies[i]
	}
	return Any()
}

// IsAny reports whether the policy binds nothing.
func (p Policy) IsAny() bool { return len(p.Cores) == 0 && p.Node == NoNode }

// Equal reports whether two policies bind to the same cores and memory.
func (p Policy) Equal(q Policy) bool { return p.Node == q.Node && slices.Equal(p.Cores, q.Cores) }

// Parse reads the values of the options --host-policy. Each has the form <name>,<setting>=<value>.
// The settings are cpu-cores (ranges such as 0-3,8-11) and numa-node. Settings with the same name
// form one policy.
func Parse(options []string) ([]Policy, error) {
	var policies []Policy
	for _, option := range options {
		name, setting, _ := strings.Cut(option, ",")
		key, value, _ := strings.Cut(setting, "=")
		if name == "" || key == "" || value == "" {
			return nil, fmt.Errorf("--host-policy option format is '<policy name>,<setting>=<value>'. Got %s", option)
		}
		i := slices.IndexFunc(policies, func(p Policy) bool { return p.Name == name })
		if i < 0 {
			i = len(policies)
			policies = append(policies, Policy{Name: name, Node: NoNode})
		}
		var err error
		switch key {
		case "cpu-cores":
			policies[i].Cores, err = parseCores(value)
		case "numa-node":
			policies[i].Node, err = parseNumber(value, maxNodes)
		default:
			err = fmt.Errorf("unknown setting %q: use cpu-cores or numa-node", key)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot use --host-policy=%s: %w", option, err)
		}
	}
	return policies, nil
}

// parseCores reads ranges of cores. A single core is a range too, as Triton requires: 3-3.
func parseCores(list string) ([]int, error) {
	var cores []int
	for part := range strings.SplitSeq(list, ",") {
		lower, upper, found := strings.Cut(part, "-")
		if !found {
			return nil, fmt.Errorf("host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got %s", part)
		}
		first, err := parseNumber(lower, maxCores)
		if err != nil {
			return nil, err
		}
		last, err := parseNumber(upper, maxCores)
		if err != nil {
			return nil, err
		}
		if first > last {
			return nil, fmt.Errorf("range %q of cores ends before it begins", part)
		}
		for core := first; core <= last; core++ {
			cores = append(cores, core)
		}
	}
	slices.Sort(cores)
	return slices.Compact(cores), nil
}

func parseNumber(text string, limit int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= limit {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", text, limit-1)
	}
	return n, nil
}

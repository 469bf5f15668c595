package isolation

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The settings of a host policy in tritonserver's option.
const (
	coresSetting = "cpu-cores"
	nodeSetting  = "numa-node"
)

// mostProcessors is the largest number of a processor or a node: Linux is built for 8,192 at most (NR_CPUS).
const mostProcessors = 1<<13 - 1

// policyName is the form of a policy's name. It needs no quotes in a shell or in YAML.
var policyName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)

// Parse reads policies from values of tritonserver's option --host-policy, as Options writes them. The policies
// are in the order of their names' first values. The error names a value with another form.
func Parse(options []string) ([]Policy, error) {
	var list []Policy
	for _, option := range options {
		name, rest, hasName := strings.Cut(option, ",")
		setting, value, hasValue := strings.Cut(rest, "=")
		switch {
		case !hasName || !hasValue:
			return nil, fmt.Errorf("cannot read the host policy %q: it has not the form NAME,SETTING=VALUE", option)
		case !policyName.MatchString(name):
			return nil, fmt.Errorf("cannot read the host policy %q: a name has letters, digits, _ and - (not first)", option)
		}
		i := slices.IndexFunc(list, func(p Policy) bool { return p.Name == name })
		if i < 0 {
			i, list = len(list), append(list, Policy{Name: name, Node: AnyNode})
		}
		var err error
		switch setting {
		case coresSetting:
			list[i].Cores, err = parseRanges(value)
		case nodeSetting:
			list[i].Node, err = parseNumber(value)
		default:
			err = fmt.Errorf("the setting %q is not known; allowed are %s and %s", setting, coresSetting, nodeSetting)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the host policy %q: %w", option, err)
		}
	}
	return list, nil
}

// parseRanges reads processors: 0-3,8. They are ascending, and each is there once.
func parseRanges(text string) ([]int, error) {
	var cores []int
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := parseNumber(low)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = parseNumber(high); err != nil {
				return nil, err
			}
		}
		if last < first || len(cores) > 0 && first <= cores[len(cores)-1] {
			return nil, fmt.Errorf("the processors %q are not ascending", text)
		}
		for id := first; id <= last; id++ {
			cores = append(cores, id)
		}
	}
	return cores, nil
}

func parseNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > mostProcessors || strconv.Itoa(n) != text {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", text, mostProcessors)
	}
	return n, nil
}

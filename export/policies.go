package export

import (
	"fmt"
	"slices"
	"strings"

	"tuner/export/tuned"
)

// memoryCapability is the capability of containers that bind memory to a NUMA node: the seccomp profiles of Docker and
// containerd refuse set_mempolicy to all others. Triton then fails to load the model (Triton: SetNumaMemoryPolicy).
const memoryCapability = "SYS_NICE"

// hostPolicies returns the values of tritonserver's option: the user's, and those of models that divided the cores of
// the measured machine, where the user describes no other processors.
func hostPolicies(models []tuned.Model, o Options) []string {
	list := slices.Clone(o.HostPolicies)
	for _, m := range models {
		for _, p := range m.Policies {
			if !isDescribed(policyName(p), o) && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// policyName returns the policy that a value of the option is about.
func policyName(value string) string {
	name, _, _ := strings.Cut(value, ",")
	return name
}

// isDescribed reports whether the user describes a policy.
func isDescribed(policy string, o Options) bool {
	return slices.ContainsFunc(o.HostPolicies, func(p string) bool { return policyName(p) == policy })
}

// checkPolicies finds what keeps models with cores of their own from being exported. The processors of such a model are
// known for one server on a machine like the measured one.
func checkPolicies(t target, models []tuned.Model, o Options) []error {
	var names, open []string // of all such policies, and of those that the user does not describe
	var whose tuned.Model
	for _, m := range models {
		for _, p := range m.Policies {
			name := policyName(p)
			if slices.Contains(names, name) {
				continue
			}
			names = append(names, name)
			if !isDescribed(name, o) {
				open, whose = append(open, name), m
			}
		}
	}
	const shared = "search with isolation: shared"
	switch {
	case len(names) > 0 && t.instanceType != nil:
		return []error{fmt.Errorf("cannot export to %s: the models divide the cores of a server, which needs Triton's option --host-policy, and Azure starts Triton itself; "+
			"choose another target, or %s", t.name, shared)}
	case len(open) == 0:
		return nil
	case len(tuned.Groups(models)) > 1:
		return []error{fmt.Errorf("--input %s: its models divide the cores of a server among them, so no others have a place there; export it by itself, "+
			"describe other processors with --host-policy %s,cpu-cores=FIRST-LAST, or %s", whose.Input, open[0], shared)}
	case t.isCluster():
		return []error{fmt.Errorf("cannot export to %s: the models divide the cores of the measured machine by the host policies %s, and only the cluster knows which processors a pod gets; "+
			"describe each with --host-policy %s,cpu-cores=FIRST-LAST, choose %s or %s for one server, or %s", t.name, strings.Join(open, ", "), open[0], Triton, Compose, shared)}
	}
	return nil
}

// policyNotes name a model's host policies that nothing defines, and the machine of those that the campaign defines.
func policyNotes(m tuned.Model, o Options) []string {
	var list []string
	for _, policy := range m.HostPolicies() {
		isOwn := slices.ContainsFunc(m.Policies, func(p string) bool { return policyName(p) == policy })
		switch {
		case isDescribed(policy, o):
		case isOwn:
			list = append(list, fmt.Sprintf("Model %q has processors of its own on the measured machine (%s). A machine that numbers its processors otherwise needs another --host-policy.", m.Name, policy))
		default:
			list = append(list, fmt.Sprintf("Model %q names the host policy %q, which no --host-policy describes, so it has no effect.", m.Name, policy))
		}
	}
	return list
}

// bindsMemory reports whether a host policy of the server binds memory to a NUMA node.
func (d Deployment) bindsMemory() bool {
	return slices.ContainsFunc(d.Arguments, func(a string) bool { return strings.Contains(a, ",numa-node=") })
}

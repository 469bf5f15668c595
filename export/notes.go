package export

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"tuner/export/tuned"
	"tuner/ort/addon"
	"tuner/ort/provider"
	"tuner/ort/sessionoption"
	"tuner/search/verdict"
)

// notes lists the facts that the files cannot express.
func notes(d Deployment, o Options) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if o.Name == "" && (len(d.Models) > 1 || d.Models[0].Name != d.Name) {
		add("The deployment is called %q, since Kubernetes takes only lower-case letters, digits and -. The models keep their names. --name chooses another name.", d.Name)
	}
	if d.Memory == 0 {
		add("No memory is reserved, since the campaign did not measure memory: set it by hand.")
	}
	if d.GPUs > 0 && !slices.ContainsFunc(d.Models, func(m tuned.Model) bool { return m.GPUs() > 0 }) {
		add("The tuned configuration computes on CPUs: its %d GPUs will idle.", d.GPUs)
	}
	if most := mostCores(d.Models); most > 0 && d.CPUs > most {
		add("The models get %d cores together, but each campaign had a machine with %d to itself. With fewer cores they do not reach "+
			"their figures while all are busy.", d.CPUs, most)
	}
	if d.target.isOneServer && (o.Replicas != DefaultReplicas || o.MaxReplicas != DefaultMaxReplicas) {
		add("The target %s is one server: --replicas and --max-replicas have no effect there.", d.Target)
	}
	for _, group := range tuned.Groups(d.Models) {
		list = append(list, answerNotes(group)...)
	}
	for _, m := range d.Models {
		list = append(list, serverNotes(m, d)...)
		for _, c := range m.Computing() {
			list = slices.Concat(list, threadNotes(c), stockNotes(c), policyNotes(c, o))
		}
	}
	if d.target.isCluster() && d.bindsMemory() {
		add("A host policy binds memory to a NUMA node. Containers may do that only with the capability %s, which the security standards for pods forbid. "+
			"Add it under securityContext.capabilities, or describe the node's processors with cpu-cores.", memoryCapability)
	}
	list = append(list, planNotes(o.Plan)...)
	if d.target.notes != nil {
		list = append(list, d.target.notes(d, o)...)
	}
	return list
}

// answerNotes give state and probability of a configuration that is not proven, of models that were measured
// together.
func answerNotes(group []tuned.Model) []string {
	m := group[0]
	// only these states put text of the file into the README
	known := []verdict.State{verdict.Unfinished, verdict.Close, verdict.NoGain}
	if !slices.Contains(known, m.State) {
		return nil
	}
	whose := fmt.Sprintf("model %q", m.Name)
	for _, other := range group[1:] {
		whose += fmt.Sprintf(" and model %q", other.Name)
	}
	text := fmt.Sprintf("The result of %s is: %s", whose, m.State)
	if m.Kept != nil {
		text += fmt.Sprintf("; all limits kept: %s", verdict.Percent(*m.Kept))
	}
	return []string{text + "."}
}

// mostCores returns the number of cores of the largest machine of several campaigns. It returns 0 for a single
// one, and if a machine is unknown.
func mostCores(models []tuned.Model) int {
	if len(tuned.Groups(models)) == 1 || slices.ContainsFunc(models, func(m tuned.Model) bool { return !m.KnowsMachine() }) {
		return 0
	}
	most := 0
	for _, m := range models {
		most = max(most, m.Host.UsableCores())
	}
	return most
}

// serverNotes describe how the server differs from the one on which a model was measured.
func serverNotes(m tuned.Model, d Deployment) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if m.Remote {
		add("Model %q was measured on %q, whose machine is unknown. Cores and GPUs follow from the configuration alone: compare them with that "+
			"machine's.", m.Name, m.Server)
	}
	if measured := m.GPUs(); d.GPUs < measured {
		add("Model %q was measured with instances on %d GPUs, but a server has %d.", m.Name, measured, d.GPUs)
	}
	return list
}

// threadNotes describe a model whose threads follow from the node and not from its configuration.
func threadNotes(m tuned.Model) []string {
	if m.Threads > 0 || m.GPUs() > 0 {
		return nil
	}
	text := fmt.Sprintf("Model %q does not set %s, so it starts a thread for each core of the node, whatever the limit", m.Name, m.ThreadOption())
	if m.KnowsMachine() {
		text += fmt.Sprintf(". It needs nodes with %d cores, like the measured one", m.Host.UsableCores())
	}
	return []string{text + "."}
}

// stockNotes describe how a stock Triton treats a model's configuration differently from the
// bundled engine (docs/design/providers.md).
func stockNotes(m tuned.Model) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if slices.ContainsFunc(slices.Collect(maps.Keys(m.Options.Session)), func(key string) bool { return !sessionoption.OfTriton(key) }) {
		add("Model %q sets session.* entries. `tuner serve` uses them, but a stock Triton ignores them (deploy_target: triton searches without them).", m.Name)
	}
	if m.Options.Settings.Value(sessionoption.ShareSession) == sessionoption.On {
		add("Model %q sets %s. `tuner serve` honours it, but a stock Triton ignores it: each instance there has a session of its own, and the "+
			"memory of the weights grows with their number.", m.Name, sessionoption.Of(sessionoption.ShareSession).Parameter)
	}
	for _, f := range m.Operators {
		if addon.NeedsPython(f.Path) {
			add("Model %q uses operators of %s, a module of Python: set LD_PRELOAD of the servers to the image's libpython3.N.so.1.0.", m.Name, filepath.Base(f.Path))
		}
	}
	for _, a := range m.Accelerators() {
		if a.Name == provider.CPU || provider.Of(a.Name).Triton == provider.Missing {
			add("Model %q names the execution accelerator %q. `tuner serve` has it, but a stock Triton does not load the model (deploy_target: triton "+
				"searches without it).", m.Name, a.Name)
		}
	}
	for _, a := range m.Options.CPUAccelerators {
		row := provider.Of(a.Name)
		if row.Triton != provider.Bare || len(a.Parameters) == 0 {
			continue
		}
		text := fmt.Sprintf("Model %q sets options of %s. `tuner serve` uses them, but a stock Triton ignores them", m.Name, row.Title)
		if row.Threads.Only && a.Parameters[row.Threads.Option] != "" {
			text += ", so there each instance has a thread for each core of the node"
		}
		add("%s.", text)
	}
	return list
}

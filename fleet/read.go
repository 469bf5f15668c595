package fleet

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tuner/spec/document"
)

// Parse reads a fleet.yaml. name is its file name for errors. Relative paths in the file are relative
// to its folder. The error is a document.Errors with every mistake of the file.
func Parse(name string, text []byte) (Fleet, error) {
	d := document.New(name, "docs/reference/fleet.md has an example")
	root, ok := d.Open(text)
	if !ok {
		return Fleet{}, d.Err()
	}
	f := Fleet{Path: name, Shared: map[string]string{}, Budget: defaultBudget, Repeats: 1, Deadline: defaultDeadline,
		Cluster: Cluster{Namespace: defaultNamespace, Exclusive: ExclusiveNode, Account: defaultAccount}}
	r := reader{&f}
	given := root.Mapping(r.fields(), r.later)
	for _, required := range []struct{ name, hint string }{
		{"name", "a short name, such as encoders; it begins the names of all objects"},
		{"models", "models: {minilm: {profile: minilm.profile.yaml, from: pvc://CLAIM/model.onnx}}"},
		{"machines", "machines: {c7i: {select: {node.kubernetes.io/instance-type: c7i.2xlarge}, cpus: 7, memory: 12Gi}}"},
		{"cluster", "cluster: {image: registry.example.com/tuner@sha256:…}"},
	} {
		if _, has := given[required.name]; !has && root.Node.Kind == yaml.MappingNode {
			root.Require(required.name, "", required.hint)
		}
	}
	r.check(given)
	if err := d.Err(); err != nil {
		return Fleet{}, err
	}
	if f.Output == "" {
		f.Output = document.RelativeTo(name, filepath.Join("out", f.Name))
	}
	return f, nil
}

type reader struct{ f *Fleet }

func (r reader) fields() []document.Field {
	return []document.Field{
		{Name: "name", Read: r.name},
		{Name: "models", Read: r.models},
		{Name: "machines", Read: r.machines},
		{Name: "constraints", Read: r.shared("constraints")},
		{Name: "objective", Read: r.shared("objective")},
		{Name: "search", Read: r.search},
		{Name: "confirm", Read: r.confirm},
		{Name: "cluster", Read: r.cluster},
		{Name: "deadline", Read: func(v document.Value) { setDuration(v, time.Minute, longestDeadline, &r.f.Deadline) }},
		{Name: "output", Read: func(v document.Value) {
			if text, ok := v.Text(); ok {
				r.f.Output = document.RelativeTo(r.f.Path, text)
			}
		}},
	}
}

// name reads the fleet's name. The names of its objects begin with it.
func (r reader) name(v document.Value) { r.f.Name, _ = label(v, longestName) }

// later names the sections of the design that this version does not have.
func (r reader) later(key, _ document.Value) bool {
	if key.Node.Value == "capacity" {
		key.Fail(document.Error{Problem: "is not supported by this version", Hint: "`tuner plan` reads the results of a campaign, and says how many replicas a traffic needs"})
		return true
	}
	return false
}

// shared keeps a field of profiles as YAML. The profiles that get it check it.
func (r reader) shared(name string) func(document.Value) {
	return func(v document.Value) {
		text, err := yaml.Marshal(v.Node)
		if err != nil {
			v.Fail(document.Error{Problem: "cannot be written as YAML: " + err.Error()})
			return
		}
		r.f.Shared[name] = string(text)
	}
}

// labelPattern is that of a DNS label, of which Kubernetes makes names.
var labelPattern = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// label reads a name that objects may have.
func label(v document.Value, longest int) (string, bool) {
	text, ok := v.Text()
	if !ok {
		return "", false
	}
	if !labelPattern.MatchString(text) || len(text) > longest {
		v.Fail(document.Error{Problem: "cannot be part of the name of an object", Allowed: fmt.Sprintf("lower-case letters, digits and -, a letter first, %d characters at most", longest)})
		return "", false
	}
	return text, true
}

// entries reads a mapping of names to mappings.
func entries(v document.Value, longest int, example string, read func(name string, v document.Value)) {
	if v.Node.Kind != yaml.MappingNode || len(v.Node.Content) == 0 {
		v.Fail(document.Error{Problem: "must be a mapping of names", Allowed: example})
		return
	}
	v.Mapping(nil, func(key, child document.Value) bool {
		if name, ok := label(key, longest); ok {
			read(name, child)
		}
		return true
	})
}

func (r reader) models(v document.Value) {
	entries(v, longestName, "NAME: {profile: …, from: …}", func(name string, v document.Value) {
		m := Model{Name: name}
		given := v.Mapping([]document.Field{
			{Name: "profile", Read: func(v document.Value) {
				if text, ok := v.Text(); ok {
					m.Profile = document.RelativeTo(r.f.Path, text)
				}
			}},
			{Name: "from", Read: func(v document.Value) { m.From = source(v) }},
			{Name: "sha256", Read: func(v document.Value) { m.SHA256 = digest(v) }},
		}, nil)
		requireBoth(v, given, "profile", "from")
		r.f.Models = append(r.f.Models, m)
	})
}

// requireBoth reports the fields that a mapping lacks.
func requireBoth(v document.Value, given map[string]document.Value, names ...string) {
	for _, name := range names {
		if _, has := given[name]; !has && v.Node.Kind == yaml.MappingNode {
			v.Require(name, "", "")
		}
	}
}

// sources describes the allowed forms of `from:`.
const sources = "pvc://CLAIM/PATH of the model file, or oci://IMAGE@sha256:DIGEST#PATH of the model file"

// source reads where a model's file is.
func source(v document.Value) Source {
	text, ok := v.Text()
	if !ok {
		return Source{}
	}
	scheme, rest, _ := strings.Cut(text, "://")
	s := Source{Kind: scheme}
	switch scheme {
	case SourceClaim:
		s.Ref, s.File, _ = strings.Cut(rest, "/")
		if !labelPattern.MatchString(s.Ref) {
			ok = false
		}
	case SourceImage:
		s.Ref, s.File, _ = strings.Cut(rest, "#")
		if !imagePattern.MatchString(s.Ref) {
			v.Fail(document.Error{Problem: "does not name the content of an image", Allowed: sources, Hint: "a tag may mean another model tomorrow: add @sha256:…"})
			return Source{}
		}
	default:
		ok = false
	}
	if !ok || s.File == "" || strings.HasPrefix(s.File, "/") || path.Clean(s.File) != s.File || strings.HasPrefix(s.File, "..") {
		v.Fail(document.Error{Problem: "is not a place from which pods can get a model", Allowed: sources})
		return Source{}
	}
	return s
}

// imagePattern is that of references with a digest. Kubernetes checks the rest.
var imagePattern = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9._:/]*@sha256:[0-9a-f]{64}$`)

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

func digest(v document.Value) string {
	text, ok := v.Text()
	if ok && !digestPattern.MatchString(text) {
		v.Fail(document.Error{Problem: "is not a SHA-256", Allowed: "64 hexadecimal digits in lower case", Hint: "sha256sum prints it"})
	}
	return text
}

// quantityPattern is the part of Kubernetes' quantities that sizes of memory need.
var quantityPattern = regexp.MustCompile(`^[1-9][0-9]{0,8}(Ki|Mi|Gi|Ti|k|M|G|T)?$`)

func (r reader) machines(v document.Value) {
	entries(v, longestMachine, "NAME: {select: …, cpus: …, memory: …}", func(name string, v document.Value) {
		m := Machine{Name: name, Share: 1}
		given := v.Mapping([]document.Field{
			{Name: "select", Read: func(v document.Value) { m.Select = labels(v) }},
			{Name: "cpus", Read: func(v document.Value) {
				n, _ := v.Whole(1, 1024)
				m.CPUs = int(n)
			}},
			{Name: "memory", Read: func(v document.Value) {
				text, ok := v.Text()
				if ok && !quantityPattern.MatchString(text) {
					v.Fail(document.Error{Problem: "is not a size of memory", Allowed: "whole numbers with Ki, Mi, Gi, Ti, k, M, G or T, such as 12Gi"})
				}
				m.Memory = text
			}},
			{Name: "gpus", Read: func(v document.Value) {
				n, _ := v.Whole(1, 64)
				m.GPUs = int(n)
			}},
			{Name: "share", Read: func(v document.Value) { m.Share = share(v) }},
			{Name: "price", Read: func(v document.Value) {
				v.Mapping([]document.Field{{Name: "per_hour", Read: func(v document.Value) { m.Price, _ = v.Number("a number above 0, in any currency") }}}, nil)
			}},
		}, nil)
		requireBoth(v, given, "select", "cpus", "memory")
		r.f.Machines = append(r.f.Machines, m)
	})
}

// share reads a fraction such as 1/4, or a number up to 1.
func share(v document.Value) float64 {
	above, below, isFraction := strings.Cut(v.Node.Value, "/")
	if v.Node.Kind == yaml.ScalarNode && isFraction {
		a, err := strconv.ParseUint(strings.TrimSpace(above), 10, 16)
		b, second := strconv.ParseUint(strings.TrimSpace(below), 10, 16)
		if err == nil && second == nil && a >= 1 && b >= a {
			return float64(a) / float64(b)
		}
	} else if x, err := strconv.ParseFloat(v.Node.Value, 64); err == nil && x > 0 && x <= 1 {
		return x
	}
	v.Fail(document.Error{Problem: "is not a part of a machine", Allowed: "a fraction such as 1/4, or a number above 0 and up to 1"})
	return 1
}

// labels reads a mapping of texts, at least one.
func labels(v document.Value) map[string]string {
	list := map[string]string{}
	if v.Node.Kind != yaml.MappingNode || len(v.Node.Content) == 0 {
		v.Fail(document.Error{Problem: "must have labels of nodes", Allowed: "LABEL: VALUE, at least one", Hint: "kubectl get nodes --show-labels lists them"})
		return nil
	}
	v.Mapping(nil, func(key, child document.Value) bool {
		if text, ok := child.AnyText(); ok {
			list[key.Node.Value] = text
		}
		return true
	})
	return list
}

func (r reader) search(v document.Value) {
	v.Mapping([]document.Field{
		{Name: "budget", Read: func(v document.Value) { setDuration(v, shortestBudget, longestBudget, &r.f.Budget) }},
		{Name: "first", Read: func(v document.Value) { setDuration(v, shortestBudget, longestBudget, &r.f.First) }},
		{Name: "machines", Read: func(v document.Value) {
			if n, ok := v.Whole(1, mostRepeats); ok {
				r.f.Repeats = int(n)
			}
		}},
	}, nil)
}

func (r reader) confirm(v document.Value) {
	c := Confirm{defaultConfirms, defaultTop, defaultConfirm}
	whole := func(name string, low, high int64, target *int) document.Field {
		return document.Field{Name: name, Read: func(v document.Value) {
			if n, ok := v.Whole(low, high); ok {
				*target = int(n)
			}
		}}
	}
	v.Mapping([]document.Field{
		whole("machines", 2, mostRepeats, &c.Machines),
		whole("top", 1, mostTop, &c.Top),
		{Name: "budget", Read: func(v document.Value) { setDuration(v, shortestBudget, longestBudget, &c.Budget) }},
	}, nil)
	r.f.Confirm = &c
}

func setDuration(v document.Value, low, high time.Duration, target *time.Duration) {
	if d, ok := v.DurationWithin(low, high); ok {
		*target = d
	}
}

func (r reader) cluster(v document.Value) {
	c := &r.f.Cluster
	text := func(target *string) func(document.Value) {
		return func(v document.Value) { *target, _ = v.Text() }
	}
	name := func(target *string) func(document.Value) {
		return func(v document.Value) { *target, _ = label(v, 63) }
	}
	given := v.Mapping([]document.Field{
		{Name: "context", Read: text(&c.Context)},
		{Name: "namespace", Read: name(&c.Namespace)},
		{Name: "image", Read: func(v document.Value) {
			if c.Image, _ = v.Text(); c.Image != "" && !imagePattern.MatchString(c.Image) {
				v.Fail(document.Error{Problem: "does not name the content of an image", Allowed: "IMAGE@sha256:DIGEST",
					Hint: "a tag may mean another program on the next machine: add @sha256:…"})
			}
		}},
		{Name: "exclusive", Read: func(v document.Value) {
			if word, ok := v.Word([]string{ExclusiveNode, ExclusiveCores, Shared}); ok {
				c.Exclusive = word
			}
		}},
		{Name: "queue", Read: text(&c.Queue)},
		{Name: "priority_class", Read: text(&c.Priority)},
		{Name: "service_account", Read: name(&c.Account)},
		{Name: "tolerations", Read: func(v document.Value) { c.Toleration = tolerations(v) }},
	}, nil)
	requireBoth(v, given, "image")
}

func tolerations(v document.Value) []Toleration {
	var list []Toleration
	for _, e := range v.Elements() {
		var t Toleration
		field := func(name string, target *string) document.Field {
			return document.Field{Name: name, Read: func(v document.Value) { *target, _ = v.Text() }}
		}
		e.Mapping([]document.Field{
			field("key", &t.Key),
			{Name: "operator", Read: func(v document.Value) { t.Operator, _ = v.Word([]string{"Exists", "Equal"}) }},
			field("value", &t.Value),
			{Name: "effect", Read: func(v document.Value) { t.Effect, _ = v.Word([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}) }},
		}, nil)
		list = append(list, t)
	}
	return list
}

// check finds mistakes of several fields.
func (r reader) check(given map[string]document.Value) {
	if v, has := given["search"]; has && r.f.First > 0 {
		unpriced := slices.ContainsFunc(r.f.Machines, func(m Machine) bool { return m.Price == 0 })
		switch {
		case r.f.First >= r.f.Budget:
			v.Fail(document.Error{Problem: fmt.Sprintf("has a first part of %v, which is not shorter than the budget of %v", r.f.First, r.f.Budget)})
		case unpriced:
			v.Fail(document.Error{Problem: "ends types that cost too much, and a type has no price", Hint: "give each machine a price, or remove `first:`"})
		}
	}
	r.checkStage(given, *r.f, "search")
	if r.f.Confirm != nil {
		r.checkStage(given, r.f.second(), "confirm")
	}
}

// checkStage finds what keeps a stage from its results: too many campaigns, or a deadline at which
// the cluster ends a pod that still measures. section has the stage's budget and machines in the
// file. All types of machines may be left for a second stage.
func (r reader) checkStage(given map[string]document.Value, stage Fleet, section string) {
	items := len(stage.Models) * len(stage.Machines) * stage.Repeats
	if v, has := given["models"]; has && items > mostItems {
		v.Fail(document.Error{Problem: fmt.Sprintf("make %d campaigns with the machines and %s.machines", items, section), Allowed: fmt.Sprintf("%d at most", mostItems),
			Hint: "split the fleet into several files"})
	}
	longest := stage.PodDeadline()
	if stage.Deadline >= longest {
		return
	}
	if v, has := given["deadline"]; has {
		v.Fail(document.Error{Problem: fmt.Sprintf("is shorter than one pod may take, which is %v", longest), Hint: "raise it, or lower " + section + ".budget"})
	} else if v, has := given[section]; has {
		v.Fail(document.Error{Problem: fmt.Sprintf("has a budget with which one pod may take %v, and the deadline is %v", longest, stage.Deadline),
			Hint: "set a longer `deadline:`, or lower the budget"})
	}
}

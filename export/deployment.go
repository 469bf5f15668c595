package export

import (
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"tuner/capacity"
	"tuner/export/environment"
	"tuner/export/monitoring"
	"tuner/export/scaling"
	"tuner/export/tuned"
	"tuner/internal/exit"
	"tuner/internal/words"
	"tuner/model/isolation"
	"tuner/ort/provider"
)

// Defaults for options that the user omits.
const (
	// DefaultImage: the release with which `make -C lab conformance` compares the engine
	DefaultImage       = "nvcr.io/nvidia/tritonserver:24.10-py3"
	DefaultGPUResource = "nvidia.com/gpu"
	DefaultReplicas    = 1
	DefaultMaxReplicas = 3
	GPUsAsMeasured     = -1
)

// Triton's model control modes.
const (
	ControlNone     = "none"
	ControlExplicit = "explicit"
	ControlPoll     = "poll"
)

// Options are the user's inputs, the same for every target.
type Options struct {
	Inputs      []string // output folders of analyzed campaigns, at least one
	Name        string   // name of the deployment; "" derives it from the model's
	Image       string   // Triton's image, with its tag
	GPUs        int      // GPUs per server; GPUsAsMeasured: as many as in the measurement
	GPUResource string   // Kubernetes' resource name for GPUs: nvidia.com/gpu, or that of a MIG profile
	Replicas    int      // number of servers, ≥ 1
	MaxReplicas int      // largest number of servers; an autoscaler is made if it exceeds Replicas
	// Plan gives the numbers of servers and the autoscaler in place of Replicas and MaxReplicas; nil: no
	// plan
	Plan *capacity.Plan
	// Chosen is exported in place of the result's best configuration; nil: that
	Chosen       *tuned.Chosen
	Prometheus   string   // address of Prometheus, for KEDA
	ControlMode  string   // Triton's model control mode
	HostPolicies []string // POLICY,SETTING=VALUE, as in tritonserver's --host-policy
	// Storage: the cluster's storage with the repository: pvc://CLAIM[/PATH], s3://…; "" a claim of
	// its own
	Storage      string
	InstanceType string // Azure machine size; "" derives it from the measured machine
	// ShareFiles: make hard links to the inputs' model files instead of copies: for an export that
	// stays beside them
	ShareFiles bool
}

// DefaultOptions returns the options of a user who sets none.
func DefaultOptions() Options {
	return Options{
		Image: DefaultImage, GPUs: GPUsAsMeasured, GPUResource: DefaultGPUResource, Replicas: DefaultReplicas, MaxReplicas: DefaultMaxReplicas,
		ControlMode: ControlNone, Prometheus: scaling.DefaultPrometheus,
	}
}

// environment returns the server's variables.
func (d Deployment) environment() map[string]string { return environment.Of(d.RepositoryBytes, d.GPUs) }

// Deployment has the values that every target writes.
type Deployment struct {
	Target       string
	Name         string // a DNS-1035 label for services, endpoints and charts
	Models       []tuned.Model
	Image        string
	Arguments    []string // of tritonserver, without the repository
	CPUs         int      // cores per server
	Memory       int64    // MiB per server; 0: unknown
	GPUs         int
	GPUResource  string
	Replicas     int
	MaxReplicas  int
	Scaling      scaling.Rule // between the two numbers
	Prometheus   string
	Plan         *capacity.Plan // nil: none
	Storage      storage
	InstanceType string
	Concurrency  int // requests in flight for which a server was tuned, over all models
	// QueueTime: mean queue time of all models' requests at which a further server pays off
	QueueTime       time.Duration
	LoadTime        time.Duration // longest time until a server is ready
	P99             time.Duration // largest p99 of all models
	RepositoryBytes int64
	Notes           []string // facts for a platform engineer, in sentences

	target target
}

// ResourcesText lists the resources of a server: "2 cores, 512 MiB, 1 × nvidia.com/gpu".
func (d Deployment) ResourcesText() string {
	text := words.Count(d.CPUs, "core")
	if d.Memory > 0 {
		text += fmt.Sprintf(", %d MiB", d.Memory)
	}
	if d.GPUs > 0 {
		text += fmt.Sprintf(", %d × %s", d.GPUs, d.GPUResource)
	}
	return text
}

// Constants that turn measurements into resources.
const (
	mebibyte     = 1 << 20
	memorySpare  = 1.3 // factor, since the measured peak covers only a few seconds
	memoryServer = 256 // MiB that Triton without a model needs more than the measured engine
	memoryStep   = 64  // MiB

	leastLoad         = 5 * time.Minute
	leastLoadBuilding = 30 * time.Minute // for a provider that builds its engines while loading
	loadSpare         = 3                // factor for other disks and files outside the cache

	// MiB of /dev/shm for tensors that clients pass in shared memory; containers have 64 by default.
	// Triton 24.10 always lets them, and does not start with --allow-client-shm, which later releases want
	// for it (docs/reference/export.md).
	sharedMemory = 256
)

// newDeployment derives a deployment. It reports all mistakes in the options together.
func newDeployment(t target, models []tuned.Model, o Options) (Deployment, error) {
	if err := errors.Join(checkOptions(t, models, o)...); err != nil {
		return Deployment{}, exit.With(exit.Usage, err)
	}
	d := Deployment{
		Target: t.name, target: t, Name: o.Name, Models: models, Image: o.Image, GPUs: o.GPUs, GPUResource: o.GPUResource,
		Replicas: o.Replicas, MaxReplicas: max(o.Replicas, o.MaxReplicas), LoadTime: loadTime(models), Arguments: arguments(models, o),
	}
	if d.Name == "" {
		d.Name = defaultName(models)
	}
	d.Storage = newStorage(o.Storage, d.Name)
	least, measured := 0, 0 // numbers of GPUs
	for _, m := range models {
		least, measured = max(least, m.LeastGPUs()), max(measured, m.GPUs())
		d.Concurrency += m.Concurrency()
		d.P99 = max(d.P99, m.P99())
	}
	if d.GPUs == GPUsAsMeasured {
		d.GPUs = measured
	}
	if d.GPUs < least {
		return Deployment{}, exit.Usagef("--gpus %d: the tuned configuration needs %d", d.GPUs, least)
	}
	d.CPUs, d.Memory, d.QueueTime = tuned.Cores(models), memory(models), tuned.QueueTime(models)
	d.scale(o)
	if t.instanceType != nil {
		var err error
		if d.InstanceType, err = t.instanceType(d, o.InstanceType); err != nil {
			return Deployment{}, err
		}
	}
	d.Notes = notes(d, o)
	return d, nil
}

// scale sets the numbers of servers, and what changes them.
func (d *Deployment) scale(o Options) {
	d.Prometheus, d.Plan = o.Prometheus, o.Plan
	if d.Plan == nil {
		d.Scaling = scaling.ByQueue(d.Replicas, d.MaxReplicas, d.QueueTime)
		return
	}
	d.Scaling = scaling.OfPlan(d.Plan.Best.Scaling)
	d.Replicas, d.MaxReplicas = d.Scaling.Min, d.Scaling.Max
}

// The forms of the options. The values go into shells, YAML and paths, so special characters are
// refused.
var (
	imagePattern      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
	resourcePattern   = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	hostPolicyPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+,(numa-node=[0-9]+|cpu-cores=[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)$`)
	instancePattern   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// mostReplicas limits both numbers of servers, to detect typing errors.
const mostReplicas = 1000

func checkOptions(t target, models []tuned.Model, o Options) []error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(len(models) > 0, "nothing to export: name the output folder of an analyzed campaign with --input")
	check(o.Name == "" || DNSLabel(o.Name) == o.Name, "--name %q: allowed are lower-case letters, digits and -, with a letter first and no - last, at most %d", o.Name, longestName)
	check(imagePattern.MatchString(o.Image) && imageTag(o.Image) != "", "--image %q: an image with its tag is needed, such as %s", o.Image, DefaultImage)
	check(o.GPUs >= GPUsAsMeasured && o.GPUs <= mostReplicas, "--gpus %d: must be from 0 to %d", o.GPUs, mostReplicas)
	check(resourcePattern.MatchString(o.GPUResource), "--gpu-resource %q: a resource of Kubernetes is needed, such as %s or nvidia.com/mig-1g.5gb", o.GPUResource, DefaultGPUResource)
	check(o.Replicas >= 1 && o.Replicas <= mostReplicas, "--replicas %d: must be from 1 to %d", o.Replicas, mostReplicas)
	check(o.MaxReplicas >= 1 && o.MaxReplicas <= mostReplicas, "--max-replicas %d: must be from 1 to %d", o.MaxReplicas, mostReplicas)
	modes := []string{ControlNone, ControlExplicit, ControlPoll}
	check(slices.Contains(modes, o.ControlMode), "--model-control-mode %q: allowed are %s", o.ControlMode, strings.Join(modes, ", "))
	for _, p := range o.HostPolicies {
		check(hostPolicyPattern.MatchString(p), "--host-policy %q: a policy with a setting is needed, such as gpu_0,numa-node=0 or cpu_0,cpu-cores=0-3", p)
	}
	check(o.InstanceType == "" || instancePattern.MatchString(o.InstanceType), "--instance-type %q: a size of Azure is needed, such as Standard_D4as_v4", o.InstanceType)
	check(t.instanceType != nil || o.InstanceType == "", "--instance-type %q: only Azure has such sizes; leave the flag out for %s", o.InstanceType, t.name)
	check(t.isCluster() || o.GPUResource == DefaultGPUResource,
		"--gpu-resource %q: only Kubernetes knows resources by name; %s counts GPUs with --gpus", o.GPUResource, t.name)
	if err := checkStorage(t, o.Storage); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, checkPlan(t, models, o)...)
	errs = append(errs, checkPolicies(t, models, o)...)
	names := map[string]string{}
	for _, m := range foldersOf(models) {
		other, twice := names[m.Name]
		check(!twice, "--input %s and %s: both have a model %q, and a server cannot have two of the same name", other, m.Input, m.Name)
		names[m.Name] = m.Input
	}
	return errs
}

// imageTag returns the tag of an image, or its digest; "" without either.
func imageTag(image string) string {
	if _, digest, ok := strings.Cut(image, "@"); ok {
		return digest
	}
	_, tag, _ := strings.Cut(path.Base(image), ":")
	return tag
}

// arguments returns those of tritonserver. The configurations are complete, so Triton must not
// complete them. A model that fails to load ends the server, so the failure shows at once.
func arguments(models []tuned.Model, o Options) []string {
	args := []string{"--model-control-mode=" + o.ControlMode}
	if o.ControlMode == ControlExplicit {
		for _, m := range foldersOf(models) {
			args = append(args, "--load-model="+m.Name)
		}
	}
	args = append(args, "--strict-readiness=true", "--exit-on-error=true", "--disable-auto-complete-config")
	if withOperators(models) > 1 {
		// ONNX Runtime fails where two models register the domain of their operators at once.
		args = append(args, "--model-load-thread-count=1")
	}
	args = append(args, monitoring.Arguments()...)
	for _, p := range hostPolicies(models, o) {
		args = append(args, isolation.Flag(p))
	}
	return args
}

// withOperators counts the folders whose configuration names libraries with operators.
func withOperators(models []tuned.Model) int {
	n := 0
	for _, m := range foldersOf(models) {
		if len(m.Config.GetModelOperations().GetOpLibraryFilename()) > 0 {
			n++
		}
	}
	return n
}

// memory returns the memory of a server with all models, in MiB: the measured peaks with a margin,
// plus Triton's own memory. It returns 0 if a peak is unknown.
func memory(models []tuned.Model) int64 {
	bytes := tuned.Memory(models)
	if bytes == 0 {
		return 0
	}
	steps := math.Ceil((bytes*memorySpare/mebibyte + memoryServer) / memoryStep)
	return int64(steps) * memoryStep
}

// loadTime returns the longest time in which a server loads its models, one after the other.
func loadTime(models []tuned.Model) time.Duration {
	least, measured := leastLoad, time.Duration(0)
	for _, m := range foldersOf(models) {
		measured += m.LaunchTime
		if provider.Of(m.Provider).BuildsEngines {
			least = leastLoadBuilding
		}
	}
	return max(least, loadSpare*measured)
}

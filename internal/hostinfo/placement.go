package hostinfo

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The environment variables that tell a process in a container what it cannot see. In a pod the
// first one comes from the downward API (spec.nodeName).
const (
	EnvNode         = "NODE_NAME"
	EnvInstanceType = "TUNER_INSTANCE_TYPE"
	EnvImage        = "TUNER_IMAGE"
)

// Placement says on which machine a process runs, and in which part of it. The fingerprint names
// the type of a machine, this names the machine. A field that cannot be known is absent.
type Placement struct {
	// name of the machine in its cluster, from the environment variable NODE_NAME
	Node string `json:"node,omitempty"`
	// name of the machine as it names itself; absent in containers, which have names of their own
	Host string `json:"host,omitempty"`
	// the kernel's name for this start of the machine, the same in all its containers
	BootID string `json:"boot_id,omitempty"`
	// digest of /etc/machine-id that only tuner makes; absent in containers, whose images may hold it
	MachineID string `json:"machine_id,omitempty"`
	// type of the machine in its cloud, from the environment variable TUNER_INSTANCE_TYPE
	InstanceType string `json:"instance_type,omitempty"`
	// hardware threads that the process may use, as the kernel lists them: 0-3,8
	CPUs string `json:"cpuset,omitempty"`
	// cores' worth of time that the control group grants; absent: unlimited
	Quota float64 `json:"quota,omitempty"`
	// bytes that the control group allows; absent: unlimited
	Memory int64 `json:"memory_limit,omitempty"`
	// digest of the container's image, from the environment variable TUNER_IMAGE
	Image string `json:"image,omitempty"`
}

// ReadPlacement reads the placement of this process on a host. It never fails.
func ReadPlacement(h Host) Placement { return readPlacement(os.DirFS("/"), os.Getenv, os.Hostname, h) }

func readPlacement(root fs.FS, environment func(string) string, hostname func() (string, error), h Host) Placement {
	p := Placement{
		Node: environment(EnvNode), InstanceType: environment(EnvInstanceType), Image: digestOf(environment(EnvImage)),
		BootID: readLine(root, "proc/sys/kernel/random/boot_id"),
		CPUs:   FormatCPUs(h.CPU.Allowed), Quota: h.CPU.Quota, Memory: h.Memory.Limit,
	}
	if isContainer(root, environment) {
		return p
	}
	p.Host, _ = hostname() // "" if the system has no name
	if id := readLine(root, "etc/machine-id"); id != "" {
		p.MachineID = hashMachine(id)
	}
	return p
}

// isContainer reports whether this process sees the files and names of a container. Kubernetes sets
// a variable, Podman and systemd another one, Docker and Podman make files.
func isContainer(root fs.FS, environment func(string) string) bool {
	_, docker := fs.Stat(root, ".dockerenv")
	_, podman := fs.Stat(root, "run/.containerenv")
	return environment("KUBERNETES_SERVICE_HOST") != "" || environment("container") != "" || docker == nil || podman == nil
}

// readLine returns the first line of a file, or "" without one.
func readLine(root fs.FS, name string) string {
	text, _ := fs.ReadFile(root, name)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// hashMachine hides a machine's ID, which is confidential. Source: machine-id(5), which asks for a
// keyed hash with a name of the application.
func hashMachine(id string) string {
	mac := hmac.New(sha256.New, []byte(id))
	mac.Write([]byte("tuner placement"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// digestOf returns the digest in an image's reference. "": it has none.
func digestOf(reference string) string {
	if _, digest, ok := strings.Cut(reference, "@"); ok {
		return digest
	}
	if strings.HasPrefix(reference, "sha256:") {
		return reference
	}
	return ""
}

// FormatCPUs writes ascending numbers of processors as the kernel lists them: 0-3,8.
func FormatCPUs(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		part := strconv.Itoa(cpus[i])
		if last > i {
			part += "-" + strconv.Itoa(cpus[last])
		}
		parts, i = append(parts, part), last+1
	}
	return strings.Join(parts, ",")
}

// IsElsewhere reports whether another placement is on another machine, or may be. A name that the
// cluster gave decides. Without one, the same start of the kernel is the same machine. After another
// start, names and ID must agree. If nothing is left to compare, the machine may be another one.
// A placement that knows neither name nor start is never elsewhere.
func (p Placement) IsElsewhere(q Placement) bool {
	switch {
	case p.Node != "" && q.Node != "":
		return p.Node != q.Node
	case p.BootID == "" || q.BootID == "":
		return false
	case p.BootID == q.BootID:
		return false
	case p.MachineID != "" && q.MachineID != "":
		return p.MachineID != q.MachineID || p.Host != q.Host
	}
	return p.Host == "" || p.Host != q.Host
}

// Name names the machine for people.
func (p Placement) Name() string {
	name := cmp.Or(p.Node, p.Host)
	boot := "start " + cmp.Or(p.BootID[:min(8, len(p.BootID))], "unknown")
	if name == "" {
		return "a machine without a known name (" + boot + ")"
	}
	return name + " (" + boot + ")"
}

// String describes the placement for people: "node gke-a-1, type c7i.2xlarge, CPUs 0-3, quota of 2
// cores, memory limit 4.3 GB".
func (p Placement) String() string {
	var parts []string
	add := func(what, value string) {
		if value != "" {
			parts = append(parts, what+value)
		}
	}
	add("node ", p.Node)
	add("host ", p.Host)
	add("type ", p.InstanceType)
	add("CPUs ", p.CPUs)
	if p.Quota > 0 {
		parts = append(parts, fmt.Sprintf("quota of %g cores", p.Quota))
	}
	if p.Memory > 0 {
		parts = append(parts, fmt.Sprintf("memory limit %.1f GB", float64(p.Memory)/1e9))
	}
	add("image ", p.Image)
	add("start ", p.BootID)
	return strings.Join(parts, ", ")
}

// Distinct returns the placements without repetitions, in their order.
func Distinct(list []Placement) []Placement {
	var distinct []Placement
	for _, p := range list {
		if !slices.Contains(distinct, p) {
			distinct = append(distinct, p)
		}
	}
	return distinct
}

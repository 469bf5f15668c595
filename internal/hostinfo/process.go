package hostinfo

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ProcessUsage is the use of CPU time and memory by a process.
type ProcessUsage struct {
	CPU     time.Duration // user and system time of all its threads, in steps of 10 ms
	RSS     int64         // current resident set in bytes
	PeakRSS int64         // highest resident set since its start or ResetPeak, in bytes
}

// Process reads the usage of a process. Linux only.
func Process(pid int) (ProcessUsage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ProcessUsage{}, fmt.Errorf("cannot read process %d: %w", pid, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return ProcessUsage{}, fmt.Errorf("cannot read process %d: %w", pid, err)
	}
	usage, err := parseProcess(string(stat), string(status))
	if err != nil {
		return ProcessUsage{}, fmt.Errorf("cannot read process %d: %w", pid, err)
	}
	return usage, nil
}

// ResetPeak sets the peak of a process to its current resident set, so that PeakRSS covers the time
// after it. Only the owner of the process may do this. Linux only.
func ResetPeak(pid int) error {
	const resetPeak = "5" // see proc(5), clear_refs
	err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(resetPeak), 0)
	if err != nil {
		return fmt.Errorf("cannot reset the peak memory of process %d: %w", pid, err)
	}
	return nil
}

// tick is the unit of CPU time in /proc. Linux has 100 ticks per second on every architecture that
// Go supports.
const tick = 10 * time.Millisecond

// parseProcess reads /proc/PID/stat and /proc/PID/status. A process that has exited, but whose
// parent has not waited for it, has no memory.
func parseProcess(stat, status string) (ProcessUsage, error) {
	// The second field is the command in parentheses, which may itself contain spaces and
	// parentheses.
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	// proc(5) counts from 1, and fields begins with the third
	const userTime, systemTime = 14 - 3, 15 - 3
	if end < 0 || len(fields) <= systemTime {
		return ProcessUsage{}, errors.New("its stat has too few fields")
	}
	user, err := parseTicks(fields[userTime])
	if err != nil {
		return ProcessUsage{}, err
	}
	system, err := parseTicks(fields[systemTime])
	if err != nil {
		return ProcessUsage{}, err
	}
	usage := ProcessUsage{CPU: user + system}
	if usage.RSS, err = memoryField(status, "VmRSS"); err != nil {
		return ProcessUsage{}, err
	}
	usage.PeakRSS, err = memoryField(status, "VmHWM")
	return usage, err
}

func memoryField(status, name string) (int64, error) {
	text := statusField(status, name)
	if text == "" {
		return 0, nil
	}
	return parseKibibytes(text)
}

func parseTicks(text string) (time.Duration, error) {
	// 38 bits: about 87 years, so that the sum of two cannot overflow
	ticks, err := strconv.ParseUint(text, 10, 38)
	if err != nil {
		return 0, fmt.Errorf("%q is not a CPU time", text)
	}
	return time.Duration(ticks) * tick, nil
}

// OwnCPU returns the CPU time, user and system, of all threads of this process. It is finer than
// that of Process.
func OwnCPU() (time.Duration, error) { return usedCPU(syscall.RUSAGE_SELF) }

// ChildrenCPU returns the CPU time of the children that this process has waited for.
func ChildrenCPU() (time.Duration, error) { return usedCPU(syscall.RUSAGE_CHILDREN) }

func usedCPU(who int) (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		return 0, fmt.Errorf("cannot read the CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// CPUUsage divides the time of an interval, summed over the machine's processors.
type CPUUsage struct {
	Busy       time.Duration // running something, interrupts included
	Idle       time.Duration // idle or waiting for I/O
	Steal      time.Duration // ready to run while the hypervisor ran something else
	Interrupts time.Duration // part of Busy: serving interrupts, which belongs to no process
}

// Total returns the whole time of the processors.
func (u CPUUsage) Total() time.Duration { return u.Busy + u.Idle + u.Steal }

// CPUSnapshot holds the times of the machine's processors since its start. Two of them make a
// CPUUsage. It counts ticks, since a large machine can exceed the 292 years of a time.Duration.
type CPUSnapshot struct{ busy, idle, steal, interrupts uint64 }

// Since returns the usage from an earlier snapshot to this one.
func (s CPUSnapshot) Since(earlier CPUSnapshot) CPUUsage {
	spent := func(now, before uint64) time.Duration { return time.Duration(now-before) * tick }
	return CPUUsage{Busy: spent(s.busy, earlier.busy), Idle: spent(s.idle, earlier.idle), Steal: spent(s.steal, earlier.steal),
		Interrupts: spent(s.interrupts, earlier.interrupts)}
}

// plus adds the times of other processors.
func (s CPUSnapshot) plus(o CPUSnapshot) CPUSnapshot {
	return CPUSnapshot{s.busy + o.busy, s.idle + o.idle, s.steal + o.steal, s.interrupts + o.interrupts}
}

// CPUTimes reads the machine's CPU times. Linux only.
func CPUTimes() (CPUSnapshot, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return CPUSnapshot{}, fmt.Errorf("cannot read the machine's CPU times: %w", err)
	}
	snapshot, err := parseCPUTimes(string(text))
	if err != nil {
		return CPUSnapshot{}, fmt.Errorf("cannot read the machine's CPU times: %w", err)
	}
	return snapshot, nil
}

// parseCPUTimes reads the first line of /proc/stat, the sum over all processors.
func parseCPUTimes(stat string) (CPUSnapshot, error) {
	line, _, _ := strings.Cut(stat, "\n")
	name, snapshot, err := parseCPULine(line)
	if err == nil && name != "cpu" {
		err = fmt.Errorf("%q is not a line of CPU times", line)
	}
	if err != nil {
		return CPUSnapshot{}, err
	}
	return snapshot, nil
}

// parseCPUTimesOf adds up the lines of some processors in /proc/stat, and counts them. It ignores
// processors without a line, since containers may renumber them (lxcfs).
func parseCPUTimesOf(stat string, cpus []int) (sum CPUSnapshot, count int, err error) {
	for line := range strings.Lines(stat) {
		digits, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "cpu")
		if !ok {
			break // the processors come first
		}
		digits, _, _ = strings.Cut(digits, " ")
		cpu, err := strconv.Atoi(digits)
		if err != nil || !slices.Contains(cpus, cpu) {
			continue // the sum, or another processor
		}
		_, one, err := parseCPULine(line)
		if err != nil {
			return CPUSnapshot{}, 0, err
		}
		sum, count = sum.plus(one), count+1
	}
	return sum, count, nil
}

// parseCPULine reads a processor's line of /proc/stat: cpu user nice system idle iowait irq softirq
// steal guest guest_nice. user and nice include the guests' times.
func parseCPULine(line string) (name string, s CPUSnapshot, err error) {
	fields := strings.Fields(line)
	const user, nice, system, idle, iowait, irq, softirq, steal = 1, 2, 3, 4, 5, 6, 7, 8
	if len(fields) <= steal {
		return "", CPUSnapshot{}, fmt.Errorf("%q is not a line of CPU times", line)
	}
	var ticks [steal + 1]uint64
	for i := user; i <= steal; i++ {
		// 48 bits: sums over processors cannot overflow
		if ticks[i], err = strconv.ParseUint(fields[i], 10, 48); err != nil {
			return "", CPUSnapshot{}, fmt.Errorf("%q is not a CPU time", fields[i])
		}
	}
	return fields[0], CPUSnapshot{
		busy:       ticks[user] + ticks[nice] + ticks[system] + ticks[irq] + ticks[softirq],
		idle:       ticks[idle] + ticks[iowait],
		steal:      ticks[steal],
		interrupts: ticks[irq] + ticks[softirq],
	}, nil
}

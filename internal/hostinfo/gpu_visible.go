//go:build linux && cgo

package hostinfo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// lookup reads an environment variable, as os.LookupEnv does.
type lookup func(name string) (value string, isSet bool)

// visibleVariable is the environment variable that lists the GPUs that CUDA shows to a program.
const visibleVariable = "CUDA_VISIBLE_DEVICES"

// visibleDevices returns the devices that CUDA shows with this list, in the list's order. The note
// says which are hidden; "": none are.
//
// Source: CUDA programming guide, "CUDA Environment Variables". Entries are indices, unique
// beginnings of UUIDs, or one MIG device. The first entry without a device ends the list. A
// repeated entry also ends the list, which the guide does not mention.
func visibleDevices(library nvml.Interface, all []device, list string) (visible []device, note string) {
	reason := ""
	for entry := range strings.SplitSeq(list, ",") {
		d, ok := findDevice(library, all, strings.TrimSpace(entry))
		if !ok || slices.ContainsFunc(visible, func(v device) bool { return v.uuid == d.uuid }) {
			if entry != "" && entry != "-1" { // the usual ways to end the list
				reason = fmt.Sprintf(": %q does not name exactly one further GPU, so it ends the list", entry)
			}
			break
		}
		visible = append(visible, d)
		if d.number < 0 {
			break // CUDA shows at most one part of a GPU
		}
	}
	if reason == "" && len(visible) >= len(all) {
		return visible, ""
	}
	return visible, fmt.Sprintf("%s=%q shows %d of %d GPUs%s", visibleVariable, list, len(visible), len(all), reason)
}

// findDevice returns the device of an entry of the list.
func findDevice(library nvml.Interface, all []device, entry string) (found device, ok bool) {
	switch number, err := strconv.Atoi(entry); {
	case err == nil:
		return one(all, func(d device) bool { return d.number == number })
	case strings.HasPrefix(entry, "GPU-"):
		return one(all, func(d device) bool { return strings.HasPrefix(d.uuid, entry) })
	case strings.HasPrefix(entry, "MIG-"):
		part, result := identify(library.DeviceGetHandleByUUID(entry))
		return part, result == nvml.SUCCESS
	}
	return device{}, false
}

// one returns the device for which isMeant is true, if there is exactly one.
func one(all []device, isMeant func(device) bool) (found device, ok bool) {
	for _, d := range all {
		if !isMeant(d) {
			continue
		}
		if ok {
			return device{}, false
		}
		found, ok = d, true
	}
	return found, ok
}

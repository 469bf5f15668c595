package profile_test

import (
	"strings"
	"testing"
	"time"

	"tuner/profile"
	"tuner/profile/journal"
	"tuner/search"
)

// A journal can be resumed only with the same servers.
func TestResumeComparesServers(t *testing.T) {
	t.Parallel()
	p, subject, _ := variantCase(t, "output: out")
	triton := journal.ServerInfo{Mode: "local", Where: "/bin/tritonserver", Name: "triton", Version: "2.51.0"}
	newer := triton
	newer.Version = "2.52.0"
	setup := profile.Setup{Profile: p, Subject: subject, Facts: search.Facts{Batching: true}, Server: &triton, Finals: &triton}
	open := func(s profile.Setup) error {
		log, err := profile.OpenLog(s, time.Unix(0, 0))
		if err != nil {
			return err
		}
		return log.Close()
	}
	for range 2 {
		if err := open(setup); err != nil {
			t.Fatal(err)
		}
	}
	changed, bundled, same := setup, setup, setup
	changed.Server, bundled.Server, same.Finals = &newer, nil, nil
	var all []string
	for _, s := range []profile.Setup{changed, bundled, same} {
		err := open(s)
		if err == nil {
			t.Fatal("a journal of another server goes on")
		}
		all = append(all, err.Error())
	}
	for i, want := range []string{"server: triton 2.51.0 (/bin/tritonserver) then, triton 2.52.0 (/bin/tritonserver) now", "server: ", "server of the finals: "} {
		if !strings.Contains(all[i], want) {
			t.Errorf("error %q, want %q", all[i], want)
		}
	}
}

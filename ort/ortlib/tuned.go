package ortlib

// ResolveTuned returns the build that serves a model here: the one that the user names, else the one on which the model was
// tuned where that is installed, else the usual one. It looks for the tuned build among the installed ones alone, since a
// file that someone hands over must not name a library that is then run.
func ResolveTuned(named, tuned string) (Build, error) {
	if named != "" || tuned == "" {
		return Resolve(named)
	}
	store, err := UserStore()
	if err != nil {
		return Build{}, err
	}
	if build, err := store.Find(tuned); err == nil {
		return build, nil
	}
	return Resolve("")
}

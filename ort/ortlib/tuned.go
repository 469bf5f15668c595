package ortlib

// ResolveTuned returns the build that serves a model here. That is the build that the user names,
// else the installed build on which the model was tuned, else the usual one. It searches only
// installed builds for the tuned one. A received file must not be able to name a library that is
// then run.
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

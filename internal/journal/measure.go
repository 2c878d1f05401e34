package journal

import (
	"os"
	"path/filepath"
	"time"
)

// Measure calls synced from now on each time the log was brought to the disk, or could not
// be, with how long that took. It replaces an earlier one. synced must not block.
func (j *Journal) Measure(synced func(took time.Duration, err error)) { j.write.synced.Store(&synced) }

func (r *recorder) measure(took time.Duration, err error) {
	if synced := r.synced.Load(); synced != nil {
		(*synced)(took, err)
	}
}

// Bytes returns how much the log and its index take, as far as they can be listed.
func (j *Journal) Bytes() (log, index int64) {
	return sizes(j.files.path), sizes(filepath.Join(j.files.path, indexName))
}

// sizes is how much the files of a directory take. What cannot be listed is not counted.
func sizes(dir string) (all int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !e.IsDir() {
			all += info.Size()
		}
	}
	return all
}

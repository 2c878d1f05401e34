package journal

import (
	"os"
	"path/filepath"
	"time"
)

// Measure makes synced receive the duration and result of each sync. synced must not block.
func (j *Journal) Measure(synced func(took time.Duration, err error)) { j.write.synced.Store(&synced) }

func (r *recorder) measure(took time.Duration, err error) {
	if synced := r.synced.Load(); synced != nil {
		(*synced)(took, err)
	}
}

// Bytes returns the sizes of the log and the index, as far as they can be determined.
func (j *Journal) Bytes() (log, index int64) {
	return sizes(j.files.path), sizes(filepath.Join(j.files.path, indexName))
}

func sizes(dir string) (all int64) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !e.IsDir() {
			all += info.Size()
		}
	}
	return all
}

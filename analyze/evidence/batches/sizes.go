package batches

// Sizes counts batches by how many samples they have.
type Sizes struct {
	Batches     int
	Least, Most int // samples in a batch
	Others      int // batches of fewer than Most, and of more than one sample
	Ones        []Singleton
	OnesInAll   int // Ones has no more than so many of them
	Last        uint32
}

// Singleton is a batch of one sample.
type Singleton struct {
	Batch uint32
	Seq   uint64 // of its row in batch_put or batch_fetch
}

// mostOnes are kept of each pass (and worker, where they are fetched).
const mostOnes = 64

func (s *Sizes) add(batch uint32, samples int, seq uint64) {
	if s.Batches == 0 || samples < s.Least {
		s.Least = samples
	}
	switch {
	case samples == 1:
		s.OnesInAll++
		if len(s.Ones) < mostOnes {
			s.Ones = append(s.Ones, Singleton{batch, seq})
		}
	case samples > s.Most:
		if s.Most > 1 {
			s.Others = s.Batches - s.OnesInAll
		}
	case samples < s.Most:
		s.Others++
	}
	s.Most = max(s.Most, samples)
	s.Batches++
	s.Last = max(s.Last, batch)
}

//! What the world decides and the protocol does not: each `pick` is one question, and the exploration hears every answer.
//!
//! A step is written as straight code. It is run again and again with other answers, in a fixed order, until there are no
//! others: the last answer that can move moves, and those behind it begin anew.

/// The answers of one run of a step.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// Each answer, and of how many.
    answers: Vec<(usize, usize)>,
    asked: usize,
}

impl Oracle {
    /// One of `0..of`.
    pub(crate) fn pick(&mut self, of: usize) -> usize {
        if self.asked == self.answers.len() {
            self.answers.push((0, of));
        }
        let (answer, _) = self.answers[self.asked];
        self.asked += 1;
        answer
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.pick(all.len())]
    }

    /// Before the first run of a step.
    pub(crate) fn begin(&mut self) {
        self.answers.clear();
        self.asked = 0;
    }

    /// Goes on to the next answers; false: all have been heard.
    pub(crate) fn advance(&mut self) -> bool {
        self.asked = 0;
        while let Some((answer, of)) = self.answers.pop() {
            if answer + 1 < of {
                self.answers.push((answer + 1, of));
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_answers_is_heard_once_also_where_a_question_depends_on_an_answer() {
        let (mut oracle, mut heard) = (Oracle::default(), Vec::new());
        oracle.begin();
        loop {
            let first = oracle.pick(3);
            let second = if first == 1 { oracle.pick(2) } else { 9 };
            heard.push((first, second));
            if !oracle.advance() {
                break;
            }
        }
        assert_eq!(heard, [(0, 9), (1, 0), (1, 1), (2, 9)]);
    }
}

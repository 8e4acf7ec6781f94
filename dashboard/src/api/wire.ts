/** The shapes on the wire, generated from the server's own records, and a few that the page makes of them. */
import type {
  Alert,
  ArrayCell,
  BytesCell,
  ImageCell,
  ListCell,
  NewSeries,
  Preview,
  StreamEvents,
  TextCell,
  Worker,
} from "./wire.gen";

export type * from "./wire.gen";

export type Nullable<T> = T | null;
export type WorkerStatus = Worker["status"];
export type Severity = Alert["severity"];
export type MarkedCell = ImageCell | TextCell | BytesCell | ArrayCell | ListCell;
export type PreviewCell = Preview["rows"][number][string];

export type SeriesHead = Omit<NewSeries, "total_points">;

export type StreamEventType = keyof StreamEvents;
/** `seq` is its number in the stream of the server; a recording has none. */
export type StreamEvent = {
  [T in StreamEventType]: { type: T; data: StreamEvents[T]; seq?: number };
}[StreamEventType];

import com.rabbitmq.jms.admin.RMQConnectionFactory;
import jakarta.jms.*;

/** Publishes to a topic with properties; prints what subscribers with and without a selector receive. */
public class Selecting {
    public static void main(String[] arguments) throws Exception {
        RMQConnectionFactory factory = new RMQConnectionFactory();
        factory.setUri(arguments[0]);
        try (Connection connection = factory.createConnection()) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Topic topic = session.createTopic("offers");
            MessageConsumer cheap = session.createConsumer(topic, "price < 100 AND kind LIKE 'car%'");
            MessageConsumer typed = session.createConsumer(topic, "JMSType = 'sale' OR kind IN ('boat')");
            MessageConsumer all = session.createConsumer(topic);
            connection.start();
            MessageProducer producer = session.createProducer(topic);
            send(session, producer, "cheap car", 99, "car", null);
            send(session, producer, "dear car", 100, "car", "sale");
            send(session, producer, "cheap boat", 1, "boat", null);
            print("cheap", cheap);
            print("typed", typed);
            print("all", all);
        }
    }

    static void send(Session session, MessageProducer producer, String text, int price, String kind, String type)
            throws JMSException {
        TextMessage message = session.createTextMessage(text);
        message.setIntProperty("price", price);
        message.setStringProperty("kind", kind);
        if (type != null) message.setJMSType(type);
        producer.send(message);
    }

    static void print(String name, MessageConsumer consumer) throws JMSException {
        StringBuilder line = new StringBuilder(name + ":");
        for (Message message; (message = consumer.receive(500)) != null; )
            line.append(" [").append(((TextMessage) message).getText()).append("]");
        System.out.println(line);
    }
}
